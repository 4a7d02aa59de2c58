// Writes one line for each test of mocha, beside this file, and prints what mocha prints.
const { appendFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const place = join(__dirname, `mocha-${process.pid}-${Date.now()}.jsonl`);
const write = (line) => appendFileSync(place, `${JSON.stringify(line)}\n`);
const OUTCOMES = { pass: 'passed', fail: 'failed', pending: 'skipped' };

module.exports = class {
  constructor(runner, options) {
    const { reporters } = createRequire(join(process.cwd(), 'any.js'))('mocha');
    new reporters.Spec(runner, options);
    write({ file: '', names: [], outcome: 'begun' });
    for (const [event, outcome] of Object.entries(OUTCOMES)) {
      runner.on(event, (test, error) => {
        const names = test.type === 'hook' ? [] : test.titlePath();
        write({ file: test.file ?? '', names, outcome, said: String(error?.stack ?? error ?? '').slice(0, 4000) });
      });
    }
  }
};
