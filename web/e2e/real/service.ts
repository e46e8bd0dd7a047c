import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** The command that `make build` leaves, unless another is named. */
export const COMMAND = process.env['LEEWARD_COMMAND'] ?? `${ROOT}.venv/bin/leeward`

/** A running `leeward serve`. It can be stopped and started again, as the same service for those who ask. */
export class Service {
  private process: ChildProcess | null = null
  private address = ''
  /** When the last window that was reported ended. */
  private until = 0

  private constructor(
    private readonly options: string[],
    private readonly folder: string,
    private readonly token: string | null,
  ) {}

  /**
   * Starts one with a cluster of examples/clusters and options of the command. Files that it names are of `folder`.
   *
   * @param cluster Null for a demo, which has its own.
   */
  static async start(
    cluster: string | null,
    options: string[],
    folder: string,
    token: string | null = null,
  ): Promise<Service> {
    const file = cluster?.includes('/') ? cluster : `${ROOT}examples/clusters/${cluster}.yaml`
    const own = cluster === null ? [] : ['--cluster', file]
    const service = new Service([...own, '--seed', '1', ...options], folder, token)
    await service.resume()
    return service
  }

  async resume(): Promise<void> {
    const process = spawn(COMMAND, ['serve', '--listen', '127.0.0.1:0', ...this.options], {
      cwd: this.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.process = process
    const told: string[] = []
    for await (const line of createInterface({ input: process.stderr })) {
      told.push(line)
      const found = /^listening on http:\/\/(\S+)$/.exec(line)
      if (found?.[1]) {
        this.address = found[1]
        // Later output must not fill the pipe.
        process.stderr.resume()
        return
      }
    }
    throw new Error(`${COMMAND} serve ${this.options.join(' ')}: ${told.join('\n')}`)
  }

  /** Ends it, and waits until it has. */
  async stop(): Promise<void> {
    const process = this.process
    if (!process || process.exitCode !== null || process.signalCode !== null) return
    const ended = new Promise((resolve) => process.once('exit', resolve))
    process.kill('SIGTERM')
    // A stream that is open is told, and the service ends by itself; a test has no time for one that does not.
    const timer = setTimeout(() => process.kill('SIGKILL'), 5000)
    await ended
    clearTimeout(timer)
  }

  /** Asks for something, and fails if that is refused. */
  async ask<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    if (this.token) headers['authorization'] = `Bearer ${this.token}`
    const init: RequestInit = { method, headers }
    if (body !== undefined) init.body = JSON.stringify(body)
    const response = await fetch(`http://${this.address}${path}`, init)
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`)
    return text ? (JSON.parse(text) as T) : (undefined as T)
  }

  text(path: string): Promise<Response> {
    return fetch(`http://${this.address}${path}`)
  }

  /**
   * Reports what links carried in the last second, and what tasks sent out of their racks, in bits per second.
   *
   * @param other More fields of the report.
   */
  async report(
    loads: Record<string, number>,
    tasks: Record<string, number> = {},
    other: object = {},
  ): Promise<void> {
    this.until = Math.max(Date.now(), this.until + 1)
    await this.ask('POST', '/v1/reports', {
      from: new Date(this.until - 1000).toISOString(),
      until: new Date(this.until).toISOString(),
      links: Object.entries(loads).map(([link, load_bps]) => ({ link, load_bps })),
      tasks: Object.entries(tasks).map(([decision, egress_bps]) => ({
        decision,
        egress_bps,
        ingress_bps: 0,
      })),
      ...other,
    })
  }

  /** Answers a request of the page with what the service answers. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    const [host, port] = this.address.split(':')
    const { url: path, method, headers } = request
    const onward = ask({ host, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    onward.on('error', () => request.socket.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }
}

/** What the links of racks and hosts carry in a cluster of `racks` racks of `hosts` hosts, where all carry as much. */
export function even(
  racks: number,
  hosts: number,
  rack_bps: number,
  host_bps: number,
): Record<string, number> {
  const found: Record<string, number> = {}
  for (let rack = 0; rack < racks; rack++) {
    for (const way of ['uplink', 'downlink']) found[`r${rack}:${way}`] = rack_bps
    for (let host = 0; host < hosts; host++)
      for (const way of ['egress', 'ingress']) found[`r${rack}h${host}:${way}`] = host_bps
  }
  return found
}
