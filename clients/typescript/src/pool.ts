// What the queues of a process share: for each server one connection for commands, and one for each
// queue whose results are awaited. A Worker has connections of its own.
import { Link } from './link.js'
import { ResultWaiter } from './results.js'
import { urlOf, type ServerOptions } from './server.js'

/** The connections to one server; each user closes its own handle. */
export class SharedLinks {
  readonly commands: Link
  readonly #server: ServerOptions
  readonly #waiters = new Map<string, ResultWaiter>()
  readonly #users = new Map<string, number>()  // by their queues
  readonly #forget: () => void

  constructor(server: ServerOptions, forget: () => void) {
    this.#server = server
    this.#forget = forget
    this.commands = new Link(server, 'sluice-queue')
  }

  /** Waits for results of this queue. */
  waiter(queue: string): ResultWaiter {
    let waiter = this.#waiters.get(queue)
    if (waiter === undefined) {
      waiter = new ResultWaiter(this.#server, this.commands, queue)
      this.#waiters.set(queue, waiter)
    }
    return waiter
  }

  use(queue: string): this {
    this.#users.set(queue, (this.#users.get(queue) ?? 0) + 1)
    return this
  }

  /** The last user of a queue takes along what waits for its results, the last of all the rest. */
  release(queue: string): void {
    const left = (this.#users.get(queue) ?? 0) - 1
    if (left > 0) return void this.#users.set(queue, left)
    this.#users.delete(queue)
    this.#waiters.get(queue)?.close()
    this.#waiters.delete(queue)
    if (this.#users.size > 0) return
    this.#forget()
    this.commands.close()
  }
}

// By URL, then by the object of further options.
const shared = new Map<string, Map<ServerOptions['redis'], SharedLinks>>()

/** The connections to this server, which all queues with the same options have in common. */
export function sharedLinks(server: ServerOptions, queue: string): SharedLinks {
  const url = urlOf(server)
  const those = shared.get(url) ?? new Map<ServerOptions['redis'], SharedLinks>()
  let links = those.get(server.redis)
  if (links === undefined) {
    links = new SharedLinks(server, () => {
      those.delete(server.redis)
      if (those.size === 0) shared.delete(url)
    })
    shared.set(url, those.set(server.redis, links))
  }
  return links.use(queue)
}
