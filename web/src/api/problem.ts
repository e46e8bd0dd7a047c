import type { ProblemDocument } from './types'

/** An error response of the service, or a request that did not reach it. */
export class Problem extends Error {
  /** Last part of the problem type; `unreachable` without a response, `unreadable` for a response in another format. */
  readonly word: string
  readonly status: number
  readonly title: string
  readonly field: string | null
  readonly detail: string

  constructor(word: string, status: number, title: string, detail = '', field: string | null = null) {
    super(title)
    this.name = 'Problem'
    this.word = word
    this.status = status
    this.title = title
    this.detail = detail
    this.field = field
  }

  /** True if the request needs a token, or a token with another role. */
  get denied(): boolean {
    return this.status === 401 || this.status === 403
  }

  /** True if the service does not have the resource. */
  get absent(): boolean {
    return this.status === 404
  }

  /** Reads the problem from an error response. */
  static async fromResponse(response: Response): Promise<Problem> {
    const text = await response.text().catch(() => '')
    const document = parse(text)
    if (!document) {
      const title = `The server returned status ${response.status}`
      return new Problem(
        'unreadable',
        response.status,
        title,
        'The response is not from a Leeward service; a proxy may be in between.',
      )
    }
    const word = document.type.replace(/^urn:leeward:problem:/, '')
    return new Problem(word, response.status, document.title, document.detail ?? '', document.field ?? null)
  }

  static unreachable(cause: unknown): Problem {
    const detail = 'Check that it runs and that this machine can reach it.'
    const problem = new Problem('unreachable', 0, 'The service does not answer', detail)
    problem.cause = cause
    return problem
  }
}

function parse(text: string): ProblemDocument | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return null
    const { type, title } = value as Partial<ProblemDocument>
    return typeof type === 'string' && typeof title === 'string' ? (value as ProblemDocument) : null
  } catch {
    return null
  }
}
