import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Path of the command: LEEWARD_COMMAND, or the one that `make build` installs. */
export const COMMAND = process.env['LEEWARD_COMMAND'] ?? `${ROOT}.venv/bin/leeward`

/** A running `leeward serve`. It can stop and start again behind the same page. */
export class Service {
  private process: ChildProcess | null = null
  private address = ''
  /** Bytes of the responses to requests of the page, as they were sent. */
  sent = 0
  /** End of the last reported window. */
  private until = 0

  private constructor(
    private readonly options: string[],
    private readonly folder: string,
    private readonly token: string | null,
  ) {}

  /**
   * Starts a service with options of the command and a cluster of `examples/clusters`. `folder` is the working
   * directory.
   *
   * @param cluster Name or path of a cluster file; null for a demo, which has its own cluster.
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
    const log: string[] = []
    for await (const line of createInterface({ input: process.stderr })) {
      log.push(line)
      const found = /^listening on http:\/\/(\S+)$/.exec(line)
      if (found?.[1]) {
        this.address = found[1]
        // Drains later output, so that the pipe does not fill.
        process.stderr.resume()
        return
      }
    }
    throw new Error(`${COMMAND} serve ${this.options.join(' ')}: ${log.join('\n')}`)
  }

  /** Stops the service and waits for its exit. */
  async stop(): Promise<void> {
    const process = this.process
    if (!process || process.exitCode !== null || process.signalCode !== null) return
    const ended = new Promise((resolve) => process.once('exit', resolve))
    process.kill('SIGTERM')
    // The service closes open streams and exits; after the timeout it is killed.
    const timer = setTimeout(() => process.kill('SIGKILL'), 5000)
    await ended
    clearTimeout(timer)
  }

  /** Sends a request and returns the response; throws on an error response. */
  async request<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
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
   * Reports loads of the last second, in bits per second: of links, and of tasks (traffic out of their racks).
   *
   * @param other More fields of the report.
   */
  async report(
    loads: Record<string, number>,
    tasks: Record<string, number> = {},
    other: object = {},
  ): Promise<void> {
    this.until = Math.max(Date.now(), this.until + 1)
    await this.request('POST', '/v1/reports', {
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

  /** Forwards a request of the page to the service. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    const [host, port] = this.address.split(':')
    const { url: path, method, headers } = request
    const onward = forward({ host, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('data', (chunk: Buffer) => (this.sent += chunk.length))
      answer.pipe(response)
      answer.on('error', () => response.destroy())
    })
    onward.on('error', () => request.socket.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }
}

/** Equal loads for all rack links and all host links of a cluster of `racks` racks with `hosts` hosts each. */
export function evenLoads(
  racks: number,
  hosts: number,
  rack_bps: number,
  host_bps: number,
): Record<string, number> {
  const loads: Record<string, number> = {}
  for (let rack = 0; rack < racks; rack++) {
    for (const way of ['uplink', 'downlink']) loads[`r${rack}:${way}`] = rack_bps
    for (let host = 0; host < hosts; host++)
      for (const way of ['egress', 'ingress']) loads[`r${rack}h${host}:${way}`] = host_bps
  }
  return loads
}
