package wire

import (
	"crypto/sha1"
	"encoding/base64"
	"strings"
)

const (
	opError        = -1
	opCreate       = 1
	opDelete       = 2
	opExists       = 3
	opGetData      = 4
	opPing         = 11
	opGetChildren2 = 12
	opMulti        = 14
	opSetAuth      = 100
	opCloseSession = -11
)

// Stat describes a znode.
type Stat struct {
	Czxid          int64 // the change that created it
	Version        int32 // number of changes of its data
	Cversion       int32 // number of changes of its children
	EphemeralOwner int64 // session of an ephemeral znode; 0 if it is persistent
	NumChildren    int32
}

func (d *decoder) stat() Stat {
	var s Stat
	s.Czxid = d.int64()
	d.take(24) // its last change, and the times of both
	s.Version, s.Cversion = d.int32(), d.int32()
	d.int32() // number of changes of the access control list
	s.EphemeralOwner = d.int64()
	d.int32() // size of the data
	s.NumChildren = d.int32()
	d.int64() // the last change of its children
	return s
}

// An ACL gives one identity all rights to a znode.
type ACL struct{ Scheme, ID string }

// World is the access control list of znodes that all clients may use.
var World = ACL{"world", "anyone"}

// Digest returns the access control list of znodes that only clients with user:password may use.
func Digest(credentials string) ACL {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials)) // the scheme's choice
	return ACL{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// An Op is an operation of a transaction: that of Create or Delete.
type Op struct {
	code int32
	body []byte
}

// Create returns the operation that creates a znode.
func Create(path string, data []byte, acl ACL, ephemeral bool) Op {
	const allRights = 0x1f
	e := new(encoder)
	e.string(path)
	e.string(string(data))
	e.int32(1) // number of entries
	e.int32(allRights)
	e.string(acl.Scheme)
	e.string(acl.ID)
	flags := int32(0)
	if ephemeral {
		flags = 1
	}
	e.int32(flags)
	return Op{opCreate, e.b}
}

// Delete returns the operation that deletes a znode of this version, or of any version if it is -1.
func Delete(path string, version int32) Op {
	e := new(encoder)
	e.string(path)
	e.int32(version)
	return Op{opDelete, e.b}
}

// Multi applies all operations or none. The error is that of the first operation that failed.
func (c *Conn) Multi(ops ...Op) error {
	e := new(encoder)
	for _, op := range ops {
		e.multiHeader(op.code, false)
		e.b = append(e.b, op.body...)
	}
	e.multiHeader(-1, true)
	d, err := c.ask(opMulti, e)
	if err != nil {
		return err
	}
	for _, op := range ops {
		result := d.multiResult(op.code)
		if err == nil && result != 0 && result != rolledBack {
			err = result
		}
	}
	if _, done := d.multiHeader(); !done {
		d.fail("more results than operations")
	}
	if broken := c.checked(d); broken != nil {
		return broken
	}
	return err
}

func (e *encoder) multiHeader(code int32, done bool) {
	e.int32(code)
	e.bool(done)
	e.int32(-1)
}

func (d *decoder) multiHeader() (code int32, done bool) {
	code, done = d.int32(), d.bool()
	d.int32() // error, again in the result
	return code, done
}

// multiResult reads the result of an operation of a transaction.
func (d *decoder) multiResult(want int32) Error {
	code, done := d.multiHeader()
	switch {
	case d.err != nil:
	case done:
		d.fail("fewer results than operations")
	case code == opError:
		return Error(d.int32())
	case code != want:
		d.fail("result of operation %d, expected %d", code, want)
	case code == opCreate:
		d.string() // the path
	}
	return 0
}

// Get returns the data of a znode.
func (c *Conn) Get(path string) (data []byte, stat Stat, err error) {
	d, err := c.askPath(opGetData, path, false)
	if err != nil {
		return nil, Stat{}, err
	}
	data, stat = d.buffer(), d.stat()
	return data, stat, c.checked(d)
}

// Exists reports whether a znode exists. The next event of the path tells that it was created, changed or deleted.
func (c *Conn) Exists(path string) (bool, error) {
	d, err := c.askPath(opExists, path, true)
	if err == NoNode {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.stat()
	return true, c.checked(d)
}

// Children returns the names of a znode's children. With watch, the next event of the path tells that one was created or
// deleted, or the znode itself.
func (c *Conn) Children(path string, watch bool) (names []string, stat Stat, err error) {
	d, err := c.askPath(opGetChildren2, path, watch)
	if err != nil {
		return nil, Stat{}, err
	}
	names, stat = d.strings(), d.stat()
	for _, name := range names {
		if name == "" || strings.Contains(name, "/") {
			d.fail("child %q", name)
		}
	}
	return names, stat, c.checked(d)
}

// Authenticate gives the connection the rights of user:password.
func (c *Conn) Authenticate(credentials string) error {
	e := new(encoder)
	e.int32(0) // unused
	e.string("digest")
	e.string(credentials)
	d, err := c.ask(opSetAuth, e)
	if err != nil {
		return err
	}
	return c.checked(d)
}

func (c *Conn) askPath(op int32, path string, watch bool) (*decoder, error) {
	e := new(encoder)
	e.string(path)
	e.bool(watch)
	return c.ask(op, e)
}

// ask sends a request, and returns the body of the reply, which is to be given to checked.
func (c *Conn) ask(op int32, body *encoder) (*decoder, error) {
	reply, err := c.request(op, body)
	return &decoder{b: reply}, err
}

// checked ends the connection if a reply was malformed.
func (c *Conn) checked(d *decoder) error {
	if err := d.end(); err != nil {
		c.fail(err)
		return ErrLost
	}
	return nil
}
