// For tests of programs that use this package: a server in memory, on a free port.
import { spawn, type ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from './time.js'

/** Options of `startServer`. */
export interface TestServerOptions {
  /** The server's program; by default the environment's SLUICE_SERVER, else `sluice-server`. */
  program?: string
  /** More directives of its configuration (`{ maxmemory: '100mb' }`). */
  directives?: Readonly<Record<string, string>>
  /** How long it may take until it answers, in milliseconds (20,000). */
  timeout?: number
}

/** A running server. */
export interface TestServer {
  /** For the option `url` of `Queue` and `Worker`. */
  readonly url: string
  readonly port: number
  readonly pid: number
  /**
   * Ends the server and removes its files. Without it the end of this process does, also by SIGTERM
   * and SIGINT. A running server does not keep the process.
   */
  close(): Promise<void>
}

const POLL_MS = 10
const STOP_MS = 5000
const MOST_PRINTED = 64 * 1024

/**
 * Starts a server that keeps everything in memory.
 *
 * @throws Error - it did not start in time, with what it has printed
 */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-testing-'))
  const readyFile = join(directory, 'ready')
  const program = options.program ?? process.env['SLUICE_SERVER'] ?? 'sluice-server'
  const directives = {
    port: 'auto', bind: '127.0.0.1', 'http-port': '0', dir: directory, 'ready-file': readyFile,
    appendonly: 'no', save: '', ...options.directives,
  }
  const words = Object.entries(directives).flatMap(([name, value]) =>
    [`--${name}`, ...(value === '' ? [''] : value.split(' '))])
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] })
  const forget = endWithUs(() => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  })
  const close = async (): Promise<void> => {
    forget()
    await end(child)
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const port = await portOf(child, readyFile, options.timeout ?? 20_000)
    child.unref()
    for (const pipe of [child.stdout, child.stderr]) (pipe as Socket).unref()
    return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid ?? 0, close }
  } catch (error) {
    await close()
    throw error
  }
}

const endings = new Set<() => void>()
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

// Calls it at the end of this process, until what it returns is called.
function endWithUs(ending: () => void): () => void {
  if (endings.size === 0) {
    process.on('exit', endAll)
    for (const signal of SIGNALS) process.on(signal, endBy)
  }
  endings.add(ending)
  return () => {
    if (!endings.delete(ending) || endings.size > 0) return
    process.off('exit', endAll)
    for (const signal of SIGNALS) process.off(signal, endBy)
  }
}

function endAll(): void {
  for (const ending of endings) ending()
}

// The signal ends the process, as it would without this listener; if there is another one it is
// heard there.
function endBy(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return
  endAll()
  process.off(signal, endBy)
  process.kill(process.pid, signal)
}

async function portOf(child: ChildProcess, readyFile: string, timeoutMs: number): Promise<number> {
  let printed = ''
  let failure: Error | null = null
  const print = (data: Buffer): void => {
    printed = (printed + data.toString()).slice(-MOST_PRINTED)
  }
  child.stdout?.on('data', print)
  child.stderr?.on('data', print)
  child.once('error', (error) => (failure = error))
  child.once('exit', (code) => (failure ??= new Error(`the server ended with ${code}\n${printed}`)))
  const deadline = performance.now() + timeoutMs
  while (performance.now() < deadline) {
    if (failure !== null) throw failure
    const ready = await readFile(readyFile, 'utf8').catch(() => '')
    const port = /^port (\d+)$/m.exec(ready)?.[1]
    if (port !== undefined) return Number(port)
    await sleep(POLL_MS)
  }
  throw new Error(`the server was not ready within ${timeoutMs} ms\n${printed}`)
}

function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve()
  }
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.kill('SIGTERM')
  })
}
