package snapshot

import (
	"encoding/json"
	"unicode/utf8"
)

// mostLevels is the largest depth of fields that are passed over.
const mostLevels = 32

// mostDigits is the largest number of digits of a number. All numbers of that length fit into 64 bits.
const mostDigits = 18

// scanner reads JSON from memory, strictly: no comments, no trailing commas, no invalid UTF-8. A snapshot is mostly columns
// of numbers, which it reads without allocation.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) skipSpace() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.skipSpace()
	if s.at == len(s.data) {
		return 0
	}
	return s.data[s.at]
}

// take passes over a byte if it is the next token.
func (s *scanner) take(token byte) bool {
	if s.peek() != token {
		return false
	}
	s.at++
	return true
}

// takeWord passes over a word such as null if it comes next.
func (s *scanner) takeWord(word string) bool {
	s.skipSpace()
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) null() bool { return s.takeWord("null") }

// end returns an error unless only space is left.
func (s *scanner) end() error {
	if s.peek() != 0 || s.at != len(s.data) {
		return s.unexpected("snapshot", "the end")
	}
	return nil
}

// unexpected is the error of a field whose value is not the expected one.
func (s *scanner) unexpected(field, expected string) error {
	s.skipSpace()
	if s.at == len(s.data) {
		return invalid("%s: the answer ends: expected %s", field, expected)
	}
	found := s.data[s.at:min(len(s.data), s.at+40)]
	return invalid("%s: %q: expected %s", field, found, expected)
}

// object reads an object. For each member it calls read with the name, which is valid until read returns; read must pass
// over the value.
func (s *scanner) object(field string, read func(name []byte) error) error {
	if !s.take('{') {
		return s.unexpected(field, "an object")
	}
	if s.take('}') {
		return nil
	}
	for {
		name, err := s.text(field)
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.unexpected(field, "a colon")
		}
		if err := read(name); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected(field, "a comma or the end of the object")
		}
	}
}

// array reads an array. For each value it calls read, which must pass over the value.
func (s *scanner) array(field string, read func() error) error {
	if !s.take('[') {
		return s.unexpected(field, "a list")
	}
	if s.take(']') {
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected(field, "a comma or the end of the list")
		}
	}
}

// text reads a string. The result is valid until the data changes.
func (s *scanner) text(field string) ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.unexpected(field, "a text")
	}
	start, escaped := s.at, false
	for at := start + 1; at < len(s.data); at++ {
		switch c := s.data[at]; {
		case c == '"':
			inside := s.data[start+1 : at]
			s.at = at + 1
			if escaped {
				return s.unescape(field, s.data[start:s.at])
			}
			if !utf8.Valid(inside) {
				return nil, invalid("%s: a text is not UTF-8", field)
			}
			return inside, nil
		case c == '\\':
			escaped = true
			at++
		case c < ' ':
			return nil, invalid("%s: a text contains a control character", field)
		}
	}
	return nil, invalid("%s: the answer ends in a text", field)
}

// unescape reads a quoted text with escapes, which names rarely have.
func (s *scanner) unescape(field string, quoted []byte) ([]byte, error) {
	var text string
	if !utf8.Valid(quoted) || json.Unmarshal(quoted, &text) != nil {
		return nil, invalid("%s: a text has invalid escapes", field)
	}
	return []byte(text), nil
}

// whole reads a whole number.
func (s *scanner) whole(field string) (int64, error) {
	s.skipSpace()
	at, negative := s.at, false
	if at < len(s.data) && s.data[at] == '-' {
		at, negative = at+1, true
	}
	first, value := at, int64(0)
	for at < len(s.data) && s.data[at]-'0' <= 9 && at-first <= mostDigits {
		value = 10*value + int64(s.data[at]-'0')
		at++
	}
	leadingZero := at-first > 1 && s.data[first] == '0'
	if at == first || at-first > mostDigits || leadingZero || (at < len(s.data) && continuesNumber(s.data[at])) {
		return 0, s.unexpected(field, "a whole number of at most 18 digits")
	}
	s.at = at
	if negative {
		value = -value
	}
	return value, nil
}

func continuesNumber(c byte) bool {
	return c-'0' <= 9 || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// skip passes over a value of any kind.
func (s *scanner) skip(field string, level int) error {
	if level > mostLevels {
		return invalid("%s: more than %d levels in one another", field, mostLevels)
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(field, func([]byte) error { return s.skip(field, level+1) })
	case c == '[':
		return s.array(field, func() error { return s.skip(field, level+1) })
	case c == '"':
		_, err := s.text(field)
		return err
	case s.takeWord("true") || s.takeWord("false") || s.null():
		return nil
	case c == '-' || c-'0' <= 9:
		return s.skipNumber(field)
	default:
		return s.unexpected(field, "a value")
	}
}

func (s *scanner) skipNumber(field string) error {
	start := s.at
	for s.at < len(s.data) && continuesNumber(s.data[s.at]) {
		s.at++
	}
	if !json.Valid(s.data[start:s.at]) {
		s.at = start
		return s.unexpected(field, "a number")
	}
	return nil
}
