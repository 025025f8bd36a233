// Tells the server how runs have ended: all that are known, in as few commands as possible, until
// each is answered.
import { ServerError, TooBig } from '../errors.js'
import type { Link } from '../link.js'
import {
  ackWords, endAnswer, nackWords, readEnds, touchWords, type EndAnswer, type Held,
  type PopRequest, type PopStyle, type Popped, type Touch,
} from './commands.js'
import { insist, Refusal, type Insisting } from './insist.js'
import { refused, type Ending } from './outcome.js'

const MOST_BYTES = 1024 * 1024  // of the results in one command

/** A run whose end is to be told. */
export interface Finished extends Held {
  readonly ending: Ending
  /** What is sent ahead of it. */
  readonly rest: readonly Touch[]
  /** Called once, when the server has answered; the ending may be another by then. */
  readonly told: (answer: EndAnswer, ending: Ending) => void
}

interface Told {
  readonly jobs: Popped[]
  /** To be told in another way: what the server did not take. */
  readonly again: Finished[]
  /** What the server refuses, and is not about a single run; null: nothing. */
  failure: unknown
}

/**
 * Tells these ends. `pop` goes with the last acknowledgement, which is then of the worker's queue.
 */
export async function tellEnds(
  commands: Link, finished: readonly Finished[], style: PopStyle, pop: PopRequest | null,
  how: Insisting,
): Promise<Told> {
  const told: Told = { jobs: [], again: [], failure: null }
  const groups = groupsOf(finished)
  for (const touches of roundsOf(finished)) {
    // A log that is not taken does not keep a job from its end.
    insist(commands, touchWords(touches, style.worker), how).catch(() => undefined)
  }
  const sent = groups.map(async (group, at) => {
    const carried = at === groups.length - 1 ? pop : null
    const words = group[0]?.ending.kind === 'ack' ? ackWords(group, style, carried)
      : nackWords(group)
    try {
      await tellGroup(group, insist(commands, words, how), carried && style.queues, told)
    } catch (error) {
      told.failure ??= error
    }
  })
  await Promise.all(sent)
  return told
}

async function tellGroup(
  group: readonly Finished[], answer: ReturnType<typeof insist>, popped: readonly string[] | null,
  told: Told,
): Promise<void> {
  let repeated: boolean
  let replies: ReturnType<typeof readEnds>
  try {
    const got = await answer
    repeated = got.repeated
    replies = readEnds(got.reply, group.length, popped)
  } catch (error) {
    // The error of a single run is that of the command.
    if (group.length > 1 || !(error instanceof Refusal)) throw error
    if (!(error.reason instanceof ServerError)) throw error
    repeated = error.repeated
    replies = { answers: [error.reason], jobs: [] }
  }
  told.jobs.push(...replies.jobs)
  let failure: ServerError | null = null
  group.forEach((each, at) => {
    const answered = endAnswer(replies.answers[at] ?? null, each.ending, repeated)
    if (typeof answered === 'string') return each.told(answered, each.ending)
    if (answered.refused instanceof TooBig) {
      told.again.push({ ...each, rest: [], ending: refused('result', answered.refused) })
    } else {
      failure ??= answered.refused
    }
  })
  if (failure !== null) throw new Refusal(failure, repeated)
}

// Those of one command: of one queue, acknowledged or given back, with results of MOST_BYTES or a
// single one. Acknowledgements come last, so that the pop in the last of them finds all slots.
function groupsOf(finished: readonly Finished[]): Finished[][] {
  const groups: { ack: Finished[][], nack: Finished[][] } = { ack: [], nack: [] }
  const open = new Map<string, { group: Finished[], bytes: number }>()
  for (const each of finished) {
    const { kind } = each.ending
    const bytes = each.ending.kind === 'ack' ? each.ending.result?.length ?? 0 : 0
    const name = kind + each.queue
    let last = open.get(name)
    if (last === undefined || last.bytes + bytes > MOST_BYTES) {
      last = { group: [], bytes: 0 }
      open.set(name, last)
      groups[kind].push(last.group)
    }
    last.group.push(each)
    last.bytes += bytes
  }
  return [...groups.nack, ...groups.ack]
}

// What goes ahead of the ends: for each queue first the first part of each, then the second.
function roundsOf(finished: readonly Finished[]): Touch[][] {
  const rounds = new Map<string, Touch[]>()
  for (const each of finished) {
    each.rest.forEach((touch, round) => {
      const name = `${round} ${each.queue}`
      rounds.set(name, [...(rounds.get(name) ?? []), touch])
    })
  }
  return [...rounds.values()]
}
