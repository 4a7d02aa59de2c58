// Writes one line for each test of node's own runner, beside this file; a suite is no test.
import { appendFileSync } from 'node:fs';

const place = new URL(`./node-${process.pid}-${Date.now()}.jsonl`, import.meta.url);
const write = (line) => appendFileSync(place, `${JSON.stringify(line)}\n`);

const LACKING = /^(?:Error(?: \[\w+\])?: )?Cannot find (?:module|package) '[^'\n]+'/m;
const findError = (text) => LACKING.exec(text)?.[0] ?? '';

export default async function* (events) {
  const names = [];
  const said = {};
  write({ file: '', names: [], outcome: 'begun' });
  for await (const { type, data } of events) {
    if (type === 'test:stderr') {
      said[data.file] = `${said[data.file] ?? ''}${data.message}`.slice(0, 10000);
    } else if (type === 'test:start') {
      names.splice(data.nesting, names.length, data.name);
    } else if ((type === 'test:pass' || type === 'test:fail') && data.details?.type !== 'suite') {
      const isLeftOut = data.skip !== undefined || data.todo !== undefined;
      const outcome = isLeftOut ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
      const cause = data.details?.error?.cause;
      const isFile = data.name === data.file;
      const error = outcome === 'failed' ? findError(isFile ? said[data.file] : cause?.message) : '';
      const stack = outcome === 'failed' ? String(cause?.stack ?? cause ?? '').slice(0, 4000) : '';
      const path = [...names.slice(0, data.nesting), data.name];
      write({ file: data.file ?? '', names: path, outcome, error, said: stack });
    }
  }
}
