// The number of the newest event of a queue, from which a reader of its ends misses nothing.
import { Trimmed } from './errors.js'
import type { Link } from './link.js'
import { arrayOf, type Reply } from './reply.js'

const BEYOND_ALL = Number.MAX_SAFE_INTEGER

/**
 * The number of an event that was the newest after the call began. The server tells the newest only
 * by comparison, so this searches for it: some 2 log2(n) short commands, once for a queue.
 */
export async function newestEvent(
  link: Link, queue: string, connectMs: number, replyMs: number,
): Promise<number> {
  const ask = (seq: number): Promise<Reply> =>
    link.call(['Q.EVENTS', queue, seq, 'COUNT', 1], connectMs, replyMs)
  // Whether the newest event is after this one.
  const isBehind = async (seq: number): Promise<boolean | null> => {
    try {
      return arrayOf(await ask(seq)).length > 0
    } catch (error) {
      if (error instanceof Trimmed) return null
      throw error
    }
  }
  let low = await oldestEvent(ask)
  let step = 1
  let high = low
  for (; (await isBehind(high)) === true; step *= 2) {
    low = high
    high = low + step
  }
  // The newest is at `low` or between the two; numbers above it are refused.
  while (high - low > 1) {
    const middle = low + Math.floor((high - low) / 2)
    if ((await isBehind(middle)) === null) high = middle
    else low = middle
  }
  return (await isBehind(high)) === null ? low : high
}

async function oldestEvent(ask: (seq: number) => Promise<Reply>): Promise<number> {
  try {
    await ask(BEYOND_ALL)
  } catch (error) {
    if (error instanceof Trimmed) return error.oldest - 1
    throw error
  }
  return BEYOND_ALL
}
