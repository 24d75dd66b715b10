// Run one call at a time, and after it only the latest of those requested meanwhile.

import { showError } from "./dom.js";

export function latestOnly(task) {
  let [running, pending] = [false, null];
  return async function run(input) {
    if (running) {
      pending = input;
      return;
    }
    running = true;
    try {
      await task(input);
    } catch (error) {
      showError(error);
    } finally {
      running = false;
      const next = pending;
      pending = null;
      if (next) run(next);
    }
  };
}
