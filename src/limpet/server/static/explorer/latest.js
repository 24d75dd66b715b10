// One call at a time, and after it the newest that was asked for meanwhile: what sliders need.

import { tell } from "../common.js";

export function latest(work) {
  let [running, waiting] = [false, null];
  return async function ask(wanted) {
    if (running) {
      waiting = wanted;
      return;
    }
    running = true;
    try {
      await work(wanted);
    } catch (error) {
      tell(error);
    } finally {
      running = false;
      const next = waiting;
      waiting = null;
      if (next) ask(next);
    }
  };
}
