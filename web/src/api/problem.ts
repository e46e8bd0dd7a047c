import type { ProblemDocument } from './types'

/** Something that the service refused, or that never reached it. */
export class Problem extends Error {
  /** The word of its type; `unreachable` where there was no answer, `unreadable` where it was none of ours. */
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

  /** Whether a token, or another one, is needed. */
  get denied(): boolean {
    return this.status === 401 || this.status === 403
  }

  /** Whether there is nothing of the kind there. */
  get absent(): boolean {
    return this.status === 404
  }

  /** Of an answer that is not a success. */
  static async of(response: Response): Promise<Problem> {
    const text = await response.text().catch(() => '')
    const document = parse(text)
    if (!document) {
      const title = `The server answered ${response.status}`
      return new Problem(
        'unreadable',
        response.status,
        title,
        'It is not the service, or something stands before it.',
      )
    }
    const word = document.type.replace(/^urn:leeward:problem:/, '')
    return new Problem(word, response.status, document.title, document.detail ?? '', document.field ?? null)
  }

  static unreachable(cause: unknown): Problem {
    const detail = 'See whether it runs, and whether this machine reaches it.'
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
