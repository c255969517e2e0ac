package resp

import "bytes"

// inline parses a command that is a line of words, as a person types it. A word in quotes may have blanks and, in double
// quotes, escapes.
func (p *parser) inline() (args [][]byte, ok bool, err error) {
	from := max(p.r, p.searched)
	i := bytes.IndexByte(p.buf[from:p.w], '\n')
	if i < 0 {
		switch p.searched = p.w; {
		case p.stranger && p.w-p.r >= maxStrangerBulk: // so that its buffer stays as small as that
			return nil, false, errStrangerBulk
		case p.full:
			return nil, false, errInlineMemory
		case p.w-p.r > maxInline:
			return nil, false, errInlineSize
		}
		return nil, false, nil
	}
	line := p.buf[p.r : from+i]
	p.r, p.searched = from+i+1, 0
	switch {
	case len(line) > maxInline:
		return nil, false, errInlineSize
	case p.stranger && len(line) > maxStrangerBulk:
		return nil, false, errStrangerBulk
	}
	args, ok = splitWords(bytes.TrimSuffix(line, []byte{'\r'}))
	switch {
	case !ok:
		return nil, false, errQuotes
	case len(args) > p.limits.args || p.stranger && len(args) > maxStrangerArgs:
		return nil, false, errInlineSize
	}
	return args, true, nil
}

// isBlank reports whether c is skipped between words.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

// endsWord reports whether c ends a word that is not in quotes. As in Redis, a vertical tab and a form feed do not.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

// splitWords splits a line into words. ok is false if a quote is not closed, or closed in the middle of a word.
func splitWords(line []byte) (words [][]byte, ok bool) {
	for {
		for len(line) > 0 && isBlank(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			return words, true
		}
		word, rest, ok := nextWord(line)
		if !ok {
			return nil, false
		}
		words, line = append(words, word), rest
	}
}

// nextWord parses the word at the beginning of a line. The word shares no memory with the line.
func nextWord(line []byte) (word, rest []byte, ok bool) {
	word = []byte{}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case endsWord(c):
			return word, line[i:], true
		case c == '"' || c == '\'':
			part, n := quoted(line[i:])
			if n == 0 || i+n < len(line) && !isBlank(line[i+n]) {
				return nil, nil, false
			}
			return append(word, part...), line[i+n:], true
		default:
			word = append(word, c)
		}
	}
	return word, nil, true
}

// quoted parses a string in quotes at the beginning of s. n is its length with both quotes, 0 if it does not end.
func quoted(s []byte) (part []byte, n int) {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return part, i + 1
		case quote == '\'' && c == '\\' && i+1 < len(s) && s[i+1] == '\'':
			part = append(part, '\'')
			i++
		case quote == '"' && c == '\\' && i+1 < len(s):
			decoded, used := escaped(s[i+1:])
			part = append(part, decoded)
			i += used
		default:
			part = append(part, c)
		}
	}
	return nil, 0
}

// escaped decodes an escape behind its backslash, and returns how many bytes it has there.
func escaped(s []byte) (c byte, n int) {
	if s[0] == 'x' && len(s) >= 3 {
		high, low := hexDigit(s[1]), hexDigit(s[2])
		if high < 16 && low < 16 {
			return high<<4 | low, 3
		}
	}
	switch s[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return s[0], 1
}

// hexDigit returns the value of a hexadecimal digit, 16 for other bytes.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
