// For tests of programs that use this package: a server in memory, on a free port.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
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
  /** Ends the server and removes its files. Without it, the end of this process does. */
  stop(): Promise<void>
}

const POLL_MS = 10
const STOP_MS = 5000

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
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const stop = async (): Promise<void> => {
    process.off('exit', kill)
    await end(child)
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const port = await portOf(child, readyFile, options.timeout ?? 20_000)
    return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid ?? 0, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function portOf(child: ChildProcess, readyFile: string, timeoutMs: number): Promise<number> {
  let printed = ''
  let failure: Error | null = null
  child.stdout?.on('data', (data: Buffer) => (printed += data.toString()))
  child.stderr?.on('data', (data: Buffer) => (printed += data.toString()))
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
