// Tells the server how runs have ended: all that are known, in as few commands as possible, until
// each is answered.
import { ServerError, TooBig } from '../errors.js'
import type { Link } from '../link.js'
import {
  ackWords, endAnswer, inCommands, nackWords, readEnds, touchWords, type EndAnswer, type Held,
  type PopRequest, type PopStyle, type Popped, type Touch,
} from './commands.js'
import { insist, Refusal, type Insisting } from './insist.js'
import { givenBack, refused, type Ending } from './outcome.js'

const MOST_BYTES = 1024 * 1024  // of the results in one command

/** A run whose end is to be told. */
export interface Finished extends Held {
  /** Becomes another one if the server does not take it. */
  ending: Ending
  /** Why it became that. */
  failure?: unknown
  /** A heartbeat that is under way with a part of its log; resolves when that is answered. */
  readonly saying: Promise<void> | null
  /** What is sent ahead of it: what no heartbeat has sent, once. */
  rest(): readonly Touch[]
}

interface Told<Each> {
  readonly jobs: Popped[]
  /** To be told in another way: what the server did not take. */
  readonly again: Each[]
  /** What the server refuses, and is not about a single run; null: nothing. */
  failure: unknown
}

type Tell<Each> = (each: Each, answer: EndAnswer) => void

/**
 * Tells these ends. `pop` goes with the last acknowledgement, which is then of the worker's queue.
 * `tell` is called for each that the server has answered.
 */
export async function tellEnds<Each extends Finished>(
  commands: Link, finished: readonly Each[], style: PopStyle, pop: PopRequest | null,
  how: Insisting, tell: Tell<Each>,
): Promise<Told<Each>> {
  for (const { saying } of finished) if (saying !== null) await saying
  const told: Told<Each> = { jobs: [], again: [], failure: null }
  const rest = restOf(finished).map((touches) =>
    // A log that is not taken does not keep a job from its end.
    insist(commands, touchWords(touches, style.worker), how).catch(() => undefined))
  const inOrder = rest.length === 0 ? how : { ...how, after: Promise.all(rest) }
  const groups = groupsOf(finished)
  const sent = groups.map((group, at) => {
    const carried = at === groups.length - 1 ? pop : null
    const words = group[0]?.ending.kind === 'ack' ? ackWords(group, style, carried)
      : nackWords(group)
    return tellGroup(
      group, insist(commands, words, inOrder), carried && style.queues, told, tell)
  })
  for (const each of await Promise.allSettled(sent)) {
    if (each.status === 'rejected') told.failure ??= each.reason
  }
  return told
}

async function tellGroup<Each extends Finished>(
  group: readonly Each[], answer: ReturnType<typeof insist>, popped: readonly string[] | null,
  told: Told<Each>, tell: Tell<Each>,
): Promise<void> {
  let repeated: boolean
  let replies: ReturnType<typeof readEnds>
  try {
    const got = await answer
    repeated = got.repeated
    replies = readEnds(got.reply, group.length, popped)
  } catch (error) {
    // The error of a single run is that of the command.
    if (!(error instanceof Refusal) || !(error.reason instanceof ServerError)) throw error
    if (group.length > 1) {
      giveBack(group, error.reason, told)
      throw error
    }
    repeated = error.repeated
    replies = { answers: [error.reason], jobs: [] }
  }
  told.jobs.push(...replies.jobs)
  let failure: ServerError | null = null
  group.forEach((each, at) => {
    const answered = endAnswer(replies.answers[at] ?? null, each.ending, repeated)
    if (typeof answered === 'string') return tell(each, answered)
    if (answered.refused instanceof TooBig) {
      each.ending = refused('result', answered.refused)
      told.again.push(each)
    } else {
      failure ??= answered.refused
      giveBack([each], answered.refused, told)
    }
  })
  if (failure !== null) throw new Refusal(failure, repeated)
}

// What may not be acknowledged does not wait for the end of its lease.
function giveBack<Each extends Finished>(
  group: readonly Each[], failure: ServerError, told: Told<Each>,
): void {
  for (const each of group) {
    if (each.ending.kind !== 'ack') continue
    each.ending = givenBack
    each.failure = failure
    told.again.push(each)
  }
}

// Those of one command. Acknowledgements come last, so that the pop in the last of them finds all
// slots.
function groupsOf<Each extends Finished>(finished: readonly Each[]): Each[][] {
  const acks = finished.filter(({ ending }) => ending.kind === 'ack')
  const nacks = acks.length === finished.length ? []
    : finished.filter(({ ending }) => ending.kind === 'nack')
  return [...inCommands(nacks), ...inCommands(acks, resultBytes, MOST_BYTES)]
}

function resultBytes({ ending }: Finished): number {
  return ending.kind === 'ack' ? ending.result?.length ?? 0 : 0
}

// What goes ahead of the ends: first the first part of each, then the second.
function restOf(finished: readonly Finished[]): Touch[][] {
  const rests = finished.map((each) => each.rest()).filter((rest) => rest.length > 0)
  if (rests.length === 0) return []
  const rounds = Math.max(0, ...rests.map((rest) => rest.length))
  const inRounds = Array.from({ length: rounds }, (_, round) =>
    rests.flatMap((rest) => rest[round] ?? []))
  return inCommands(inRounds.flat())
}
