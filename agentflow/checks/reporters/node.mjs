// Writes one line for each test of node's own runner, beside this file; a suite is no test.
import { appendFileSync } from 'node:fs';

const place = new URL(`./node-${process.pid}-${Date.now()}.jsonl`, import.meta.url);
const write = (line) => appendFileSync(place, `${JSON.stringify(line)}\n`);

export default async function* (events) {
  const names = [];
  write({ file: '', names: [], outcome: 'begun' });
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      names.splice(data.nesting, names.length, data.name);
    } else if ((type === 'test:pass' || type === 'test:fail') && data.details?.type !== 'suite') {
      const isLeftOut = data.skip !== undefined || data.todo !== undefined;
      const outcome = isLeftOut ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
      write({ file: data.file ?? '', names: [...names.slice(0, data.nesting), data.name], outcome });
    }
  }
}
