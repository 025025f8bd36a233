// How a process waits for the results of a queue: one connection follows the events that end jobs,
// and a job whose end it shows is read by Q.GET.
//
// No end is missed. Each job is read once the number is known from which events are read,
// and every Q.EVENTS names all jobs that were read so. What is added while one waits is fresh:
// CLIENT UNBLOCK ends the wait, and the job is read before the next one.
//
// Without events each of the jobs that have waited longest has a turn: a connection of a pool to
// itself, for a Q.GET … WAIT. Turns end one by one, and the next begins at once.
import { CommandError, NoPermission, Trimmed, Unblocked } from './errors.js'
import { newestEvent } from './cursor.js'
import { Closed, isTemporary, Link } from './link.js'
import { arrayOf, isArray, mapOf, numberOf, textOf, yesOrNo, type Reply } from './reply.js'
import { isEnd, type State } from './info.js'
import type { ServerOptions } from './server.js'
import { sleep } from './time.js'
import type { Word, Words } from './words.js'

/** Somebody who waits for the end of a job. */
export interface Awaited {
  readonly id: string
  /** The reply of Q.GET … WITH result; null if the job is not kept. */
  ended(reply: Reply): void
  failed(error: unknown): void
}

const CONNECT_MS = 5000
const REPLY_MS = 5000
const BLOCK_MS = 5000
const SLACK_MS = 2000
const MOST_IDS = 256  // that one Q.EVENTS may name
const POOL = 8
const TURN_MS = 1000  // of a job; one that takes no turn is at most that late
const SHORT_TURN_MS = 250  // if no connection is left for others
const EVENTS_AGAIN_MS = 5000  // then it is asked again whether there are events
const PAUSE_MS = 250
const WAKE_AGAIN_MS = 5
const IDLE_MS = 10_000  // then the connections are closed
const ENDS: readonly Word[] = ['completed', 'failed', 'cancelled', 'expired', 'forgotten']
  .flatMap((type) => ['TYPE', type])

/** Whether this reply of Q.GET is the end of a job. */
export function hasEnded(reply: Reply): boolean {
  if (!isArray(reply)) return true
  const fields = mapOf(reply)
  // Q.GET … WAIT tells an end of which Q.GET knows nothing: the successor has the id by now.
  const successor = yesOrNo(fields.get('successor') ?? false)
  return !successor && isEnd(textOf(fields.get('state')) as State)
}

export class ResultWaiter {
  readonly #server: ServerOptions
  readonly #commands: Link
  readonly #queue: string
  readonly #awaited = new Map<string, Set<Awaited>>()
  readonly #fresh = new Set<string>()
  readonly #events: Link
  readonly #pool: Link[] = []
  readonly #turns = new Map<string, Link>()
  #after: number | null = null
  #idle: NodeJS.Timeout | undefined
  #following = false
  #reading = false
  #reads = 0
  #waking = false
  #closed = false
  #turnOver: () => void = () => undefined

  constructor(server: ServerOptions, commands: Link, queue: string) {
    this.#server = server
    this.#commands = commands
    this.#queue = queue
    this.#events = new Link(server, 'sluice-results')
  }

  /** From now until `remove`, or until the job has ended. */
  add(awaited: Awaited): void {
    const those = this.#awaited.get(awaited.id) ?? new Set()
    this.#awaited.set(awaited.id, those.add(awaited))
    this.#fresh.add(awaited.id)
    if (!this.#following) void this.#follow()
    else if (this.#reading && !this.#waking) void this.#wake()
    this.#turnOver()
  }

  remove(awaited: Awaited): void {
    const those = this.#awaited.get(awaited.id)
    if (those?.delete(awaited) && those.size === 0) this.#awaited.delete(awaited.id)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#idle)
    this.#events.close()
    for (const link of this.#pool) link.close()
    this.#failAll(new Closed('the queue was closed'))
  }

  async #follow(): Promise<void> {
    this.#following = true
    clearTimeout(this.#idle)
    while (this.#awaited.size > 0 && !this.#closed) {
      try {
        if (this.#after === null && !(await this.#begin())) {
          await this.#waitInTurn()
        } else {
          while (this.#fresh.size > 0) await this.#look(this.#takeFresh())
          if (this.#awaited.size > 0) await this.#read()
        }
      } catch (error) {
        await this.#recover(error)
      }
    }
    this.#following = false
    this.#idle = setTimeout(() => this.#dropAll(), IDLE_MS).unref()
  }

  #dropAll(): void {
    for (const link of [this.#events, ...this.#pool]) link.drop('nobody waits')
  }

  // Finds where to read from: then every job is fresh. False: the queue keeps no events, or the
  // user may not read them.
  async #begin(): Promise<boolean> {
    try {
      if (!(await this.#keepsEvents())) return false
      await this.#ask(['CLIENT', 'UNBLOCK', 0])
      const newest = await newestEvent(this.#events, this.#queue, CONNECT_MS, REPLY_MS)
      if (this.#events.clientId === null) return false  // It could not be woken.
      this.#after = newest
    } catch (error) {
      if (error instanceof NoPermission || error instanceof CommandError) return false
      throw error
    }
    for (const id of this.#awaited.keys()) this.#fresh.add(id)
    return true
  }

  async #keepsEvents(): Promise<boolean> {
    const config = mapOf(await this.#ask(['Q.CONFIG', this.#queue, 'GET', 'events']))
    return textOf(config.get('events')).split(':')[0] !== '0'
  }

  async #read(): Promise<void> {
    const ids = [...this.#awaited.keys()]
    const chosen = ids.length <= MOST_IDS ? ids.flatMap((id): Word[] => ['ID', id]) : []
    const words: Words = ['Q.EVENTS', this.#queue, this.#after ?? 0, 'COUNT', 1000,
      'BLOCK', BLOCK_MS, ...ENDS, ...chosen]
    this.#reading = true
    this.#reads += 1
    const reply = await this.#events.call(words, CONNECT_MS, BLOCK_MS + SLACK_MS)
      .finally(() => (this.#reading = false))
    if (reply === null) {
      if (this.#fresh.size === 0 && !(await this.#keepsEvents())) this.#after = null
      return
    }
    const ended = new Set<string>()
    for (const event of arrayOf(reply)) {
      const [seq, , , id] = arrayOf(event)
      this.#after = numberOf(seq)
      ended.add(textOf(id))
    }
    // Without events: the queue is gone, and its jobs with it.
    await this.#look(ended.size === 0 ? ids : [...ended].filter((id) => this.#awaited.has(id)))
  }

  // Ends the waiting Q.EVENTS, which may not have arrived yet, or have no connection yet. The reply
  // may be about one that has ended, behind which another waits without what is fresh by now.
  async #wake(): Promise<void> {
    this.#waking = true
    try {
      while (this.#reading && this.#fresh.size > 0) {
        const { clientId } = this.#events
        const read = this.#reads
        if (clientId !== null &&
          numberOf(await this.#ask(['CLIENT', 'UNBLOCK', clientId])) === 1 &&
          read === this.#reads) break
        await sleep(WAKE_AGAIN_MS)
      }
    } catch {
      this.#events.drop('it could not be woken')
    } finally {
      this.#waking = false
    }
  }

  #takeFresh(): string[] {
    const ids = [...this.#fresh].filter((id) => this.#awaited.has(id))
    this.#fresh.clear()
    return ids
  }

  async #look(ids: readonly string[]): Promise<void> {
    const commands = ids.map((id): Words => ['Q.GET', this.#queue, id, 'WITH', 'result'])
    const replies = await this.#commands.pipeline(commands, CONNECT_MS, REPLY_MS)
      .catch((reason: unknown) => ids.map(() => ({ status: 'rejected' as const, reason })))
    let failure: unknown = null
    replies.forEach((got, at) => {
      const id = ids[at] ?? ''
      if (got.status === 'fulfilled') return this.#told(id, got.value)
      if (!isTemporary(got.reason)) return this.#fail(id, got.reason)
      this.#fresh.add(id)
      failure = got.reason
    })
    if (failure !== null) throw failure
  }

  // Until nobody waits, or it is time to look for events. Turns that are not over by then continue.
  async #waitInTurn(): Promise<void> {
    const end = performance.now() + EVENTS_AGAIN_MS
    while (this.#awaited.size > 0 && !this.#closed && performance.now() < end) {
      this.#fresh.clear()  // Each is read in its turn; with events again all are fresh.
      const over = new Promise<void>((resolve) => (this.#turnOver = resolve))
      for (const id of this.#awaited.keys()) {
        if (this.#turns.size === POOL) break
        if (!this.#turns.has(id)) void this.#takeTurn(id)
      }
      await over
    }
  }

  async #takeTurn(id: string): Promise<void> {
    const link = this.#freeLink()
    this.#turns.set(id, link)
    const words: Words = ['Q.GET', this.#queue, id, 'WITH', 'result', 'WAIT']
    const blockMs = this.#turns.size === POOL ? SHORT_TURN_MS : TURN_MS
    try {
      const reply = await link.call([...words, blockMs], CONNECT_MS, blockMs + SLACK_MS)
      if (reply === null) await this.#look([id])
      else this.#told(id, reply)
    } catch (error) {
      if (isTemporary(error)) await sleep(PAUSE_MS)
      else this.#fail(id, error)
    }
    const those = this.#awaited.get(id)
    if (those !== undefined && this.#awaited.delete(id)) this.#awaited.set(id, those)
    this.#turns.delete(id)
    this.#turnOver()
  }

  #freeLink(): Link {
    const used = new Set(this.#turns.values())
    const free = this.#pool.find((link) => !used.has(link))
    if (free !== undefined) return free
    const link = new Link(this.#server, 'sluice-results')
    this.#pool.push(link)
    return link
  }

  #told(id: string, reply: Reply): void {
    if (!hasEnded(reply)) return
    const those = this.#awaited.get(id)
    this.#awaited.delete(id)
    for (const awaited of those ?? []) awaited.ended(reply)
  }

  #fail(id: string, error: unknown): void {
    const those = this.#awaited.get(id)
    this.#awaited.delete(id)
    for (const awaited of those ?? []) awaited.failed(error)
  }

  #failAll(error: unknown): void {
    for (const id of [...this.#awaited.keys()]) this.#fail(id, error)
  }

  // A server that was away may have lost its last events, or be another one: the place to read from
  // is found again.
  async #recover(error: unknown): Promise<void> {
    if (error instanceof Unblocked) return
    this.#after = null
    if (error instanceof Trimmed) return
    if (isTemporary(error)) await sleep(PAUSE_MS)
    else this.#failAll(error)
  }

  #ask(words: Words): Promise<Reply> {
    return this.#commands.call(words, CONNECT_MS, REPLY_MS)
  }
}
