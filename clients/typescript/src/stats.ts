// Q.STATS: what a queue, or a part of it, holds and has done.
import { fieldName, mapOf, numberOf, orNull, textOf, type Reply } from './reply.js'
import { whole, type Word } from './words.js'

/** Which part of the queue, and how. Without any of these: the whole queue. */
export interface StatsOptions {
  /** Only this group. */
  group?: string
  /** A line for each band, group, key, worker, or value of a tag. */
  by?: 'pri' | 'group' | 'key' | 'worker' | { readonly tag: string }
  /** The time that `rates` are of, 1,000 to 60,000 ms. */
  window?: number
}

/**
 * Fields by their names in QUEUE.md (Q.STATS) in camel case, without `_ms`: all times are
 * milliseconds. Nested maps are objects; those of `byPriority` are named by the bands.
 */
export interface Stats {
  readonly [field: string]: number | string | boolean | null | Stats
}

const BOOLEAN = new Set(['quiet'])

export function statsWords(options: StatsOptions): Word[] {
  const words: Word[] = []
  if (options.group !== undefined) words.push('GROUP', whole('group', options.group))
  if (typeof options.by === 'string') words.push('BY', options.by)
  else if (options.by !== undefined) words.push('BY', 'TAG', whole('tag', options.by.tag))
  if (options.window !== undefined) words.push('WINDOW', Math.round(options.window))
  return words
}

/** Reads one line: names and values in turn. */
export function readStats(reply: Reply): Stats {
  const read = (name: string, value: Reply): Stats[string] => {
    if (name === 'by_priority') return Object.fromEntries(namesAndNumbers(value))
    // Also what later servers add: a field that is an array is a map.
    if (Array.isArray(value)) return readStats(value)
    if (BOOLEAN.has(name)) return value === true || value === 1
    return orNull(value, numberOrText)
  }
  return Object.fromEntries(
    [...mapOf(reply)].map(([name, value]) => [fieldName(name), read(name, value)]))
}

/** Reads a map from names to lines. */
export function readLines(reply: Reply): Map<string, Stats> {
  return new Map([...mapOf(reply)].map(([name, line]) => [name, readStats(line)]))
}

function namesAndNumbers(reply: Reply): [string, number][] {
  return [...mapOf(reply)].map(([name, value]) => [name, numberOf(value)])
}

// Numbers with decimals come as strings.
function numberOrText(reply: Reply): number | string {
  if (typeof reply === 'number') return reply
  const text = textOf(reply)
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text) ? numberOf(reply) : text
}
