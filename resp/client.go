package resp

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// client answers CLIENT.
func (c *conn) client(args [][]byte) {
	n := len(args)
	switch sub := strings.ToLower(string(args[1][:min(len(args[1]), maxName)])); sub {
	case "id", "getname", "info", "help":
		if n != 2 {
			c.fail(wrongArity("client|" + sub))
			return
		}
		c.clientFact(sub)
	case "list":
		c.w.verbatim(c.describe() + "\n")
	case "setname":
		c.exactly(args, 3, c.setName)
	case "setinfo":
		c.exactly(args, 4, c.setInfo)
	case "no-evict", "no-touch":
		c.exactly(args, 3, c.onOrOff)
	case "reply":
		c.exactly(args, 3, func(args [][]byte) { c.only(args[2], "ON") })
	case "tracking":
		if n < 3 {
			c.fail(wrongArity("client|tracking"))
			return
		}
		c.only(args[2], "OFF")
	default:
		c.fail(unknownSubcommand("CLIENT", args[1]))
	}
}

// exactly runs a subcommand if it has n arguments.
func (c *conn) exactly(args [][]byte, n int, run func(args [][]byte)) {
	if len(args) != n {
		c.fail(wrongArity(strings.ToLower(string(args[0]) + "|" + string(args[1]))))
		return
	}
	run(args)
}

func unknownSubcommand(command string, name []byte) string {
	return "ERR unknown subcommand '" + string(cutAtNUL(name, 128)) + "'. Try " + command + " HELP."
}

func (c *conn) clientFact(sub string) {
	switch sub {
	case "id":
		c.w.integer(c.id)
	case "getname":
		if c.name == "" {
			c.w.null()
		} else {
			c.w.text(c.name)
		}
	case "info":
		c.w.verbatim(c.describe() + "\n")
	case "help":
		c.help("CLIENT")
	}
}

// help answers HELP.
func (c *conn) help(name string) {
	list := subcommands[strings.ToLower(name)]
	c.w.array(len(list) + 1)
	c.w.simple(name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range list {
		c.w.simple(line)
	}
}

// describe returns the attributes of the connection in one line. The last one is the version that the last read was
// answered from.
func (c *conn) describe() string {
	proto, user := 2, "default"
	if c.w.resp3 {
		proto = 3
	}
	if g := c.grant(); g != nil {
		user = g.Name
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d db=0 user=%s lib-name=%s lib-ver=%s resp=%d sequins-db=%s sequins-read=%s",
		c.id, c.RemoteAddr(), c.LocalAddr(), c.name, int(time.Since(c.accepted).Seconds()), user, c.libName, c.libVersion, proto,
		printable(c.selected), c.lastRead())
}

// printable returns s if it is printable. A client can select any db that exists, and those have plain names; what is not
// printable is no name.
func printable(s []byte) string {
	if !isPrintable(s) {
		return ""
	}
	return string(s)
}

func (c *conn) lastRead() string {
	if len(c.readVersion) == 0 {
		return ""
	}
	return string(c.readDB) + "/" + string(c.readVersion)
}

// maxClientName is the length of the names that a client can set on its connection.
const maxClientName = 256

func (c *conn) setName(args [][]byte) {
	if !isPrintable(args[2]) {
		c.fail(errClientName)
		return
	}
	if len(args[2]) > maxClientName {
		c.fail(errClientNameSize)
		return
	}
	c.name = string(args[2])
	c.w.simple("OK")
}

// setInfo answers CLIENT SETINFO. Its attributes are those of Redis, and those of sessions.
func (c *conn) setInfo(args [][]byte) {
	name, value := args[2], args[3]
	text := ""
	switch {
	case is(name, "LIB-NAME"), is(name, "LIB-VER"):
		text = c.setLibrary(strings.ToLower(string(name)), value)
	case is(name, "SEQUINS-AT-LEAST"), is(name, "SEQUINS-VERSION"):
		text = c.require(value, is(name, "SEQUINS-VERSION"))
	case is(name, "SEQUINS-ATTRIBUTES"):
		on := is(value, "ON")
		if !on && !is(value, "OFF") {
			text = errSyntax
			break
		}
		c.attributes = on
	default:
		text = "ERR Unrecognized option '" + string(cutAtNUL(name, 128)) + "'"
	}
	if text != "" {
		c.fail(text)
		return
	}
	c.w.simple("OK")
}

func (c *conn) setLibrary(name string, value []byte) (text string) {
	switch {
	case !isPrintable(value):
		return "ERR " + name + " cannot contain spaces, newlines or special characters."
	case len(value) > maxClientName:
		return errClientNameSize
	case name == "lib-name":
		c.libName = string(value)
	default:
		c.libVersion = string(value)
	}
	return ""
}

// require sets the version of a db that later reads need, from db/version; db/ ends that.
func (c *conn) require(value []byte, exact bool) (text string) {
	db, version, ok := bytes.Cut(value, []byte{'/'})
	if !ok || len(db) == 0 || len(value) > 1024 {
		return "ERR the value must be db/version, or db/ to end the requirement"
	}
	if text := c.readable(db); text != "" {
		return text
	}
	s := c.sessions[string(db)]
	if s == nil {
		if len(c.sessions) >= maxSessions {
			return "ERR this connection requires versions of too many databases"
		}
		s = &session{}
	}
	if exact {
		s.exact = bytes.Clone(version)
	} else {
		s.atLeast = bytes.Clone(version)
	}
	if c.sessions == nil {
		c.sessions = make(map[string]*session)
	}
	c.sessions[string(db)] = s
	if len(s.exact) == 0 && len(s.atLeast) == 0 {
		delete(c.sessions, string(db))
	}
	return ""
}

// onOrOff accepts ON and OFF, neither of which changes anything.
func (c *conn) onOrOff(args [][]byte) {
	if !is(args[2], "ON") && !is(args[2], "OFF") {
		c.fail(errSyntax)
		return
	}
	c.w.simple("OK")
}

// only accepts one value of an option.
func (c *conn) only(value []byte, word string) {
	if !is(value, word) {
		c.fail("ERR only " + word + " is supported")
		return
	}
	c.w.simple("OK")
}
