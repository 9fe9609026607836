/** Sending until it has arrived: the same bytes again after a lost connection, with longer and longer pauses. */

const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 30;

/**
 * @param {() => Promise<any>} attempt sends once
 * @param {(pause: number) => Promise<void>} pause waits so many seconds, or less if there is news of the connection
 * @returns {Promise<any>} the server's answer; a refusal that will not pass is thrown
 */
export async function deliver(attempt, pause) {
  for (let seconds = FIRST_PAUSE; ; seconds = Math.min(2 * seconds, LONGEST_PAUSE)) {
    try {
      return await attempt();
    } catch (refusal) {
      if (!refusal.passing) throw refusal;
      await pause(Math.max(seconds, refusal.wait));
    }
  }
}
