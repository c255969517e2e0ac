package resp

import (
	"bytes"
	"strings"
)

// execute answers a command, or adds it to the reads that are looked up together. The arguments are valid until the end of
// the round.
func (c *conn) execute(cmd received) {
	if len(cmd.args) == 0 {
		c.lookUp()
		c.fail(refusals[cmd.refused])
		return
	}
	var lower [maxName]byte
	name := lowerCase(lower[:], cmd.args[0])
	known := commands[string(name)]
	if known == nil {
		c.lookUp()
		c.unsupported(name, cmd)
		return
	}
	if cmd.refused != kept {
		c.lookUp()
		c.fail(refusals[cmd.refused])
		return
	}
	if text := c.obstacle(known, len(cmd.args)); text != "" {
		c.lookUp()
		c.fail(text)
		return
	}
	if known.form != noForm {
		c.addRead(known, cmd.args)
		return
	}
	c.lookUp()
	known.run(c, cmd.args)
}

// maxName is the length of the longest name of a command that is looked for.
const maxName = 32

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

// obstacle returns the error of a command that must not run, or "".
func (c *conn) obstacle(known *command, args int) string {
	switch {
	case args != known.arity && (known.arity > 0 || args < -known.arity):
		return wrongArity(known.name)
	case known.flags&noAuth == 0 && !c.authenticated():
		return errNoAuth
	case known.flags&loading == 0 && c.server.holding.Load():
		return errStarting
	}
	return ""
}

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unsupported answers a command that is not supported.
func (c *conn) unsupported(name []byte, cmd received) {
	arity, writing := writes[string(name)]
	n := len(cmd.args)
	switch {
	case string(name) == "post", string(name) == "host:":
		// An HTTP request of a browser, which a hostile page can cause. Its body could contain commands.
		c.closing = true
		return
	case !writing:
		c.fail(unknownCommand(cmd.args))
	case cmd.refused == kept && n != arity && (arity > 0 || n < -arity):
		c.fail(wrongArity(string(name)))
	case !c.authenticated():
		c.fail(errNoAuth)
	default:
		c.fail(errWrite)
	}
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

// fail answers with an error.
func (c *conn) fail(text string) { c.w.fail(text) }
