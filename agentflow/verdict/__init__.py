"""The judge: which checks a change has to pass, what proves it, and what follows.

`judge` is a pure function of a `case`. In the order in which a task meets them, the modules say:

- what a path is, product, document or check: `surface` (by name and settings, also of files that are both),
  `reach` (by what uses what), `paths` (by what the base run read);
- how checks run: `target_tests` (which tests the task is about), `projects` (those that are new or gone),
  `runner` (side by side, in copies),
  `earlier_runs` (run again where chance may be at work, or reused), `checking` (for one task, with records);
- what the diff shows before anything runs: `diff/`, by `inspect_change`; of that, whether the program is
  the same: `same/`, by `is_same_program` and `find_renamed`;
- which runs have to fail: `probes/`, by `plan_canaries` and `plan_probes`;
- what follows: `case` (all facts), `proofs` (what proves the change, and what probes show), `judge`, `notes`
  (which decide nothing), `ending` (how the task ends);
- who asks all of them: `gather` for a task that runs, `reverify` for a record.

`syntax` reads Python for all of them, `tokens` other languages, and `core/test_ids` the ids of tests.
"""
