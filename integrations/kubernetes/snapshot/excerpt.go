package snapshot

import (
	"strings"
	"unicode"
)

// Excerpt returns a part of an answer for logs: on one line, of at most a number of characters, and without the token, which a
// proxy may repeat.
func Excerpt(text, token string, most int) string {
	if token != "" {
		text = strings.ReplaceAll(text, token, "...")
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	line := []rune(strings.Join(words, " "))
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}
