// The options of Q.ADD as words of the command.
/** A word of a command. */
export type Word = string | number | Buffer

/**
 * A command, its name first. Numbers are sent as decimals; strings as UTF-8.
 * @internal
 */
export type Words = readonly [command: string, ...rest: Word[]]

/** The options of `Queue.add`; all times are milliseconds, rounded to whole ones. */
export interface AddOptions {
  /** 1 to 512 bytes. Without it, and for `*`, the client makes one before its first try. */
  id?: string
  /** The band, by its name or number; 0 is the most urgent. */
  pri?: string | number
  /** Ranks the job as if it had come that much earlier; negative: later. */
  boost?: number
  /** The job waits that long before it is pending. */
  delay?: number
  /** The job waits until then: a date, or unix milliseconds. */
  at?: Date | number
  /** The user, team or tenant that owns the job. */
  group?: string
  /** Labels that limits and `match` apply to, at most 4. */
  keys?: readonly string[]
  /** The slots that the job takes, 1 by default. */
  cost?: number
  /** The longest time that the job may spend pending; 0: no limit. */
  ttl?: number
  /** The term of its leases. */
  lease?: number
  /** Its longest run; 0: no limit. */
  maxRun?: number
  /** How many failures are retried. */
  retry?: number
  /** The bounds of the random delay before a retry. */
  backoff?: readonly [base: number, max: number]
  /** What to do if `id` is in use; `error` by default. */
  ifdup?: 'error' | 'keep' | 'update' | 'replace'
  /** Ids of jobs that must complete first. */
  needs?: readonly string[]
  /** Ids of jobs that must end first, in any way. */
  after?: readonly string[]
  /** Names and values for statistics and selection. */
  tags?: Readonly<Record<string, string>>
  /** Refuses the job (TOOLATE) if it would wait longer. */
  maxWait?: number
}

/** What no bytes of UTF-8 are. */
export const LONE = /\p{Surrogate}/u
export const IS_LONE = 'has a lone surrogate, which UTF-8 cannot express'

/**
 * The name, as it is. All names that a caller gives pass here: those that UTF-8 cannot express
 * would be sent as one, with U+FFFD in it.
 *
 * @throws TypeError - it has a lone surrogate
 */
export function whole<Name>(argument: string, name: Name): Name {
  if (typeof name === 'string' && LONE.test(name)) {
    throw new TypeError(`${argument.toLowerCase()} ${IS_LONE}`)
  }
  return name
}

/** The words of the options, without the id and IFDUP. */
export function addWords(options: AddOptions): Word[] {
  const words: Word[] = []
  const one = (name: string, value: Word | undefined): void => {
    if (value !== undefined) words.push(name, whole(name, value))
  }
  const each = (name: string, values: readonly string[] | undefined): void => {
    for (const value of values ?? []) words.push(name, whole(name, value))
  }
  const time = (name: string, ms: number | undefined): void => one(name, ms && Math.round(ms))
  one('PRI', options.pri)
  time('BOOST', options.boost)
  time('DELAY', options.delay)
  time('AT', options.at instanceof Date ? options.at.getTime() : options.at)
  one('GROUP', options.group)
  each('KEY', options.keys)
  one('COST', options.cost)
  time('TTL', options.ttl)
  time('LEASE', options.lease)
  time('MAXRUN', options.maxRun)
  one('RETRY', options.retry)
  if (options.backoff !== undefined) words.push('BACKOFF', ...options.backoff.map(Math.round))
  each('NEED', options.needs)
  each('AFTER', options.after)
  for (const [name, value] of Object.entries(options.tags ?? {})) {
    words.push('TAG', whole('tag', name), whole('tag', value))
  }
  time('MAXWAIT', options.maxWait)
  return words
}

const MOST_BYTES = 512 * 1024 * 1024  // of one word; a server that is sent more hangs up
const LONG = 1024 * 1024  // then a string is sent as bytes: it might not fit into one with others

/**
 * A string or bytes as a word; a command of strings alone costs least.
 *
 * @throws RangeError - it is longer than a server takes, whatever its limits
 */
export function encoded(value: Uint8Array | string): Buffer | string {
  const bytes = value.length > MOST_BYTES / 3 ? Buffer.byteLength(value) : 0
  if (bytes > MOST_BYTES) {
    throw new RangeError(`${bytes} bytes are more than the 512 MB that a server takes`)
  }
  if (typeof value === 'string' || Buffer.isBuffer(value)) return value
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** The command as it is sent. */
export function encodedCommand(words: Words): Buffer | string {
  const parts: Buffer[] = []
  let text = `*${words.length}\r\n`
  for (const word of words) {
    if (typeof word === 'string' && word.length < LONG) {
      text += `$${Buffer.byteLength(word)}\r\n${word}\r\n`
    } else if (typeof word === 'number') {
      const digits = String(word)
      text += `$${digits.length}\r\n${digits}\r\n`
    } else {
      const bytes = typeof word === 'string' ? Buffer.from(word) : word
      parts.push(Buffer.from(`${text}$${bytes.length}\r\n`), bytes)
      text = '\r\n'
    }
  }
  return parts.length === 0 ? text : Buffer.concat([...parts, Buffer.from(text)])
}
