package resp

import (
	"bytes"

	"sequins/auth"
)

// state is what a client has set on its connection. RESET makes it the zero value.
type state struct {
	name, libName, libVersion string
	selected                  []byte // the db of keys; nil if keys name their own
	holder                    *auth.Holder
	sessions                  map[string]*session
	attributes                bool // send the versions of answers as attributes
}

// session is what a client requires of the version of a db.
type session struct{ atLeast, exact []byte }

// maxSessions is the number of dbs for which one connection may require a version.
const maxSessions = 256

// session returns what the client requires of a db, nil for nothing.
func (c *conn) session(db []byte) *session {
	if len(c.sessions) == 0 {
		return nil
	}
	return c.sessions[string(db)]
}

// answerFrom notes the version that a read was answered from, and sends it before the answer if the client wants that.
func (c *conn) answerFrom(db, version []byte) {
	c.readDB = append(c.readDB[:0], db...)
	c.readVersion = append(c.readVersion[:0], version...)
	if c.attributes && c.w.resp3 {
		c.answersFrom([][]byte{db}, [][]byte{version})
	}
}

// answersFrom is answerFrom for the dbs of one read.
func (c *conn) answersFrom(dbs, versions [][]byte) {
	if len(dbs) > 0 {
		last := len(dbs) - 1
		c.readDB = append(c.readDB[:0], dbs[last]...)
		c.readVersion = append(c.readVersion[:0], versions[last]...)
	}
	if !c.attributes || !c.w.resp3 {
		return
	}
	c.w.header('|', 1)
	c.w.text("sequins-versions")
	c.w.pairs(len(dbs))
	for i := range dbs {
		c.w.bulk(dbs[i])
		c.w.bulk(versions[i])
	}
}

// grant returns the rights of the client's token, nil without one that is known.
func (c *conn) grant() *auth.Grant {
	if c.holder == nil {
		return nil
	}
	return c.holder.Grant()
}

// authenticated reports whether the client has a token, or needs none.
func (c *conn) authenticated() bool {
	return c.server.opts.Tokens == nil || c.grant() != nil
}

// readable returns an error text if the client may not read a db. It does not depend on whether the db exists.
func (c *conn) readable(db []byte) string {
	if c.server.opts.Tokens == nil {
		return ""
	}
	switch g := c.grant(); {
	case g == nil:
		return errNoAuth
	case !g.Reads(db):
		return errNoPermission
	}
	return ""
}

// authenticate checks a token. user is the name of the token, "default", or empty. It returns an error text, or "".
func (c *conn) authenticate(user, token []byte) string {
	tokens := c.server.opts.Tokens
	if tokens == nil {
		if len(user) == 0 || string(user) == "default" {
			return ""
		}
		return errWrongPass
	}
	h := tokens.Hold(token)
	var g *auth.Grant
	if h != nil {
		g = h.Grant() // nil if the token was taken out of the file meanwhile
	}
	if g == nil || len(user) > 0 && string(user) != "default" && string(user) != g.Name {
		c.server.countRefused()
		return errWrongPass
	}
	c.holder = h
	c.p.stranger = false
	return ""
}

// auth answers AUTH.
func (c *conn) auth(args [][]byte) {
	var user []byte
	switch {
	case len(args) > 3:
		c.fail(errSyntax)
		return
	case len(args) == 3:
		user = args[1]
	case c.server.opts.Tokens == nil:
		c.fail(errNoPassword)
		return
	}
	if text := c.authenticate(user, args[len(args)-1]); text != "" {
		c.fail(text)
		return
	}
	c.w.simple("OK")
}

// hello answers HELLO.
func (c *conn) hello(args [][]byte) {
	resp3 := c.w.resp3
	if len(args) > 1 {
		v, ok := parseInteger(args[1])
		switch {
		case !ok:
			c.fail(errProtoRange)
			return
		case v != 2 && v != 3:
			c.fail(errNoProto)
			return
		}
		resp3 = v == 3
	}
	name, text := c.helloOptions(args)
	if text == "" && !c.authenticated() {
		text = errHelloNoAuth
	}
	if text != "" {
		c.fail(text)
		return
	}
	if name != nil {
		c.name = string(name)
	}
	c.w.resp3 = resp3
	c.greet()
}

// helloOptions carries out AUTH, and returns the name of SETNAME, or an error text.
func (c *conn) helloOptions(args [][]byte) (name []byte, text string) {
	for i := 2; i < len(args); i++ {
		left := len(args) - 1 - i
		switch {
		case left >= 2 && is(args[i], "AUTH"):
			if text = c.authenticate(args[i+1], args[i+2]); text != "" {
				return nil, text
			}
			i += 2
		case left >= 1 && is(args[i], "SETNAME"):
			if name = args[i+1]; !isPrintable(name) {
				return nil, errClientName
			}
			if len(name) > maxClientName {
				return nil, errClientNameSize
			}
			i++
		default:
			return nil, "ERR Syntax error in HELLO option '" + string(cutAtNUL(args[i], 128)) + "'"
		}
	}
	return name, ""
}

// is reports whether an argument is a word, which is given in upper case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}

// isPrintable reports whether a name has no blanks and no special characters.
func isPrintable(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

// serverVersion is the version of Redis whose commands are a model. Clients decide by it what they may use.
const serverVersion = "7.2.0"

// greet answers HELLO with what Redis says.
func (c *conn) greet() {
	c.w.pairs(7)
	c.w.text("server")
	c.w.text("redis")
	c.w.text("version")
	c.w.text(serverVersion)
	c.w.text("proto")
	if c.w.resp3 {
		c.w.integer(3)
	} else {
		c.w.integer(2)
	}
	c.w.text("id")
	c.w.integer(c.id)
	c.w.text("mode")
	c.w.text("standalone")
	c.w.text("role")
	c.w.text("master")
	c.w.text("modules")
	c.w.array(0)
}

// selectDB answers SELECT. The db 0 of Redis means that keys name their own db.
func (c *conn) selectDB(args [][]byte) {
	db := args[1]
	if string(db) == "0" {
		c.selected = nil
		c.w.simple("OK")
		return
	}
	text := c.readable(db)
	if text == "" && !c.server.opts.Exists(db) {
		text = errDBRange
	}
	if text != "" {
		c.fail(text)
		return
	}
	c.selected = bytes.Clone(db)
	c.w.simple("OK")
}

// ping answers PING.
func (c *conn) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.w.simple("PONG")
	case 2:
		c.w.bulk(args[1])
	default:
		c.fail(wrongArity("ping"))
	}
}

// echo answers ECHO.
func (c *conn) echo(args [][]byte) {
	c.w.bulk(args[1])
	c.flushIfFull()
}

// quit answers QUIT.
func (c *conn) quit([][]byte) {
	c.w.simple("OK")
	c.closing = true
}

// reset answers RESET.
func (c *conn) reset([][]byte) {
	c.state, c.w.resp3 = state{}, false
	c.readDB, c.readVersion = nil, nil
	c.p.stranger = c.server.opts.Tokens != nil
	c.w.simple("RESET")
}
