package resp

import (
	"bytes"

	"sequins/blocks"
	"sequins/server/auth"
)

// session is what a client has set on its connection, and what it may read.
type session struct {
	tokens   *auth.Tokens // nil allows everything
	granted  *auth.Grant  // nil before the client has authenticated, see grant
	selected []byte       // the db of keys; nil if keys name their own
}

// grant returns the rights of the client's token, nil without one that is known now.
func (s *session) grant() *auth.Grant {
	if s.granted == nil {
		return nil
	}
	g := s.tokens.Current(s.granted)
	if g != nil {
		s.granted = g
	}
	return g
}

// authenticated reports whether the client has a token, or needs none.
func (s *session) authenticated() bool { return s.tokens == nil || s.grant() != nil }

// readable returns an error text if the client may not read a db. It does not depend on whether the db exists.
func (s *session) readable(db []byte) string {
	if s.tokens == nil {
		return ""
	}
	switch g := s.grant(); {
	case g == nil:
		return errNoAuth
	case !g.Reads(db):
		return errNoPermission
	}
	return ""
}

var slash = []byte{'/'}

// check returns the db of names, or the error text of a read that must not run. The names are keys of a db; if that is nil, they name
// their own.
func (s *session) check(names [][]byte, of []byte, most int) (db []byte, text string) {
	if len(names) > most {
		return nil, errTooManyKeys
	}
	for i, name := range names {
		at, key := of, name
		if of == nil {
			var ok bool
			if at, key, ok = bytes.Cut(name, slash); !ok {
				return nil, errNoDB
			}
		}
		switch {
		case len(key) > blocks.MaxKey:
			return nil, errKeyTooLong
		case i == 0:
			db = at
		case !bytes.Equal(at, db):
			return nil, errMixed
		}
	}
	return db, s.readable(db)
}

// authenticate checks a token. user is the name of the token, "default", or empty. It returns an error text, or "".
func (c *conn) authenticate(user, token []byte) string {
	isDefault := len(user) == 0 || string(user) == "default"
	if c.tokens == nil {
		if isDefault {
			return ""
		}
		return errWrongPass
	}
	g := c.tokens.FindToken(token)
	if g == nil || !isDefault && string(user) != g.Name {
		if m := c.server.opts.Metrics; m != nil {
			m.Unknown.Redis.Done(0, 401, 0, 0)
		}
		return errWrongPass
	}
	c.granted = g
	c.p.limits = c.server.limits
	return ""
}

// reply answers a command that has no result: OK, or an error text if there is one.
func (w *replies) reply(text string) {
	if text != "" {
		w.fail(text)
		return
	}
	w.simple("OK")
}

func (c *conn) auth(args [][]byte) {
	switch n := len(args); {
	case n == 2 && c.tokens == nil:
		c.w.fail(errNoPassword)
	case n == 2:
		c.w.reply(c.authenticate(nil, args[1]))
	case n == 3:
		c.w.reply(c.authenticate(args[1], args[2]))
	default:
		c.w.fail(errSyntax)
	}
}

func (c *conn) hello(args [][]byte) {
	resp3 := c.w.resp3
	if len(args) > 1 {
		v, ok := parseInteger(args[1])
		switch {
		case !ok:
			c.w.fail(errProtoRange)
			return
		case v != 2 && v != 3:
			c.w.fail(errNoProto)
			return
		}
		resp3 = v == 3
	}
	text := ""
	for i := 2; i < len(args) && text == ""; i++ {
		left := len(args) - 1 - i
		switch {
		case left >= 2 && is(args[i], "AUTH"):
			text = c.authenticate(args[i+1], args[i+2])
			i += 2
		case left >= 1 && is(args[i], "SETNAME"):
			i++ // nothing shows names
		default:
			text = "ERR Syntax error in HELLO option '" + string(cutAtNUL(args[i], 128)) + "'"
		}
	}
	if text == "" && !c.authenticated() {
		text = errHelloNoAuth
	}
	if text != "" {
		c.w.fail(text)
		return
	}
	c.w.resp3 = resp3
	c.w.greet(c.id)
}

// serverVersion is the version of Redis whose commands are a model. Clients decide by it what they may use.
const serverVersion = "7.2.0"

// greet answers HELLO with what Redis says.
func (w *replies) greet(id int64) {
	proto := int64(2)
	if w.resp3 {
		proto = 3
	}
	w.pairs(7)
	for _, word := range []string{"server", "redis", "version", serverVersion, "proto"} {
		w.text(word)
	}
	w.integer(proto)
	w.text("id")
	w.integer(id)
	for _, word := range []string{"mode", "standalone", "role", "master", "modules"} {
		w.text(word)
	}
	w.array(0)
}

// client answers CLIENT with the subcommands that clients send when they connect. Nothing uses the names and attributes that they set.
func (c *conn) client(args [][]byte) {
	arity := map[string]int{"id": 2, "getname": 2, "setname": 3, "setinfo": 4}
	sub := string(bytes.ToLower(args[1]))
	switch n, known := arity[sub]; {
	case !known:
		c.w.fail("ERR unknown subcommand '" + string(cutAtNUL(args[1], 128)) + "'. Try CLIENT HELP.")
	case n != len(args):
		c.w.fail(wrongArity("client|" + sub))
	case sub == "id":
		c.w.integer(c.id)
	case sub == "getname":
		c.w.null()
	default:
		c.w.simple("OK")
	}
}

// selectDB answers SELECT. The db 0 of Redis means that keys name their own db.
func (c *conn) selectDB(args [][]byte) {
	db := args[1]
	text := ""
	if string(db) == "0" {
		c.selected = nil
	} else if text = c.readable(db); text == "" && !c.server.opts.Exists(db) {
		text = errDBRange
	} else if text == "" {
		c.selected = bytes.Clone(db)
	}
	c.w.reply(text)
}

// is reports whether an argument is a word, in upper or lower case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}
