package resp

import (
	"bytes"
	"strings"
)

// command is a command that is supported, and what runs it.
type command struct {
	arity int // the number of arguments with the name; a negative one is the minimum
	flags flag
	// run answers the command. Its arguments are valid until it returns. Reads with a form have none: they are looked up
	// together with the reads before and after them, see reading.
	run    func(c *conn, args [][]byte)
	form   form
	answer answer
}

// form is how the arguments of a read name keys.
type form uint8

const (
	noForm form = iota
	keys        // db/key ...
	fields      // db key ...
)

// answer is what the answer of a read has of the values.
type answer uint8

const (
	aValue  answer = iota // the value
	aValues               // all values, in an array
	aCount                // how many keys exist
	aLength               // the length of the value
	aType                 // the type of the value
	aTTL                  // that the value does not expire
)

type flag uint8

const (
	loading flag = 1 << iota // also while the node is starting
	noAuth                   // also for clients that must authenticate
)

// commands are the supported commands by their names in lower case.
var commands map[string]*command

func init() { // commands refer to the table
	commands = map[string]*command{
		"get":     {arity: 2, form: keys, answer: aValue},
		"mget":    {arity: -2, form: keys, answer: aValues},
		"exists":  {arity: -2, form: keys, answer: aCount},
		"strlen":  {arity: 2, form: keys, answer: aLength},
		"type":    {arity: 2, form: keys, answer: aType},
		"ttl":     {arity: 2, form: keys, answer: aTTL},
		"pttl":    {arity: 2, form: keys, answer: aTTL},
		"hget":    {arity: 3, form: fields, answer: aValue},
		"hmget":   {arity: -3, form: fields, answer: aValues},
		"hexists": {arity: 3, form: fields, answer: aCount},
		"hstrlen": {arity: 3, form: fields, answer: aLength},
		"hlen":    {arity: 2, run: (*conn).hlen},
		"hscan":   {arity: -3, run: (*conn).hscan},
		"scan":    {arity: -2, run: (*conn).scan},
		"dbsize":  {arity: 1, run: (*conn).dbSize},
		"select":  {arity: 2, flags: loading, run: (*conn).selectDB},
		"ping":    {arity: -1, run: (*conn).ping},
		"echo":    {arity: 2, flags: loading, run: (*conn).ping},
		"hello":   {arity: -1, flags: loading | noAuth, run: (*conn).hello},
		"auth":    {arity: -2, flags: loading | noAuth, run: (*conn).auth},
		"client":  {arity: -2, flags: loading, run: (*conn).client},
		"command": {arity: -1, flags: loading, run: (*conn).command},
		"info":    {arity: -1, flags: loading, run: (*conn).info},
		"quit":    {arity: -1, flags: loading | noAuth, run: (*conn).quit},
	}
}

// maxName is the length of the longest name of a command that is looked for.
const maxName = 32

// execute answers a command, or adds it to the reads that are looked up together. The arguments are valid until the end of
// the round.
func (c *conn) execute(args [][]byte) {
	var lower [maxName]byte
	name := lowerCase(lower[:], args[0])
	known := commands[string(name)]
	text := ""
	switch {
	case string(name) == "post", string(name) == "host:":
		// An HTTP request of a browser, which a hostile page can cause. Its body could contain commands.
		c.closing = true
	case known == nil:
		text = unknownCommand(args)
	case known.arity > 0 && len(args) != known.arity, len(args) < -known.arity:
		text = wrongArity(string(name))
	case known.flags&noAuth == 0 && !c.authenticated():
		text = errNoAuth
	case known.flags&loading == 0 && c.server.reads.Holding():
		text = errStarting
	case known.form != noForm:
		c.addRead(known, args)
		return
	}
	c.lookUp()
	switch {
	case text != "":
		c.w.fail(text)
	case known != nil:
		known.run(c, args)
	}
}

// lowerCase returns a name in lower case, nil if it is longer than the buffer.
func lowerCase(buf, name []byte) []byte {
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	return buf[:len(name)]
}

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unknownCommand is Redis's error, with up to 128 bytes each of the name and of the arguments.
func unknownCommand(args [][]byte) string {
	const most = 128
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.Write(cutAtNUL(args[0], most))
	b.WriteString("', with args beginning with: ")
	for shown, i := 0, 1; i < len(args) && shown < most; i++ {
		part := cutAtNUL(args[i], most-shown)
		b.WriteString("'")
		b.Write(part)
		b.WriteString("' ")
		shown += len(part) + 3
	}
	return b.String()
}

// cutAtNUL returns the beginning of s that C prints.
func cutAtNUL(s []byte, most int) []byte {
	s = s[:min(len(s), most)]
	if i := bytes.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}
