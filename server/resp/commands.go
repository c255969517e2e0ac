package resp

import (
	"bytes"
	"strings"
)

// command is a command that is supported: what COMMAND says of it, and what runs it.
type command struct {
	name  string // lower case
	arity int    // the number of arguments with the name; a negative one is the minimum
	flags flag
	// first, last and step are the positions of keys among the arguments.
	first, last, step int
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

// flag are the flags of a command.
type flag uint8

const (
	readonly flag = 1 << iota
	fast
	loading // also while the node is starting
	noAuth  // also for clients that must authenticate
)

var flagNames = []string{"readonly", "fast", "loading", "no_auth"}

// commands are the supported commands by their names in lower case.
var commands map[string]*command

func init() { // commands refer to the table
	commands = make(map[string]*command, len(commandTable))
	for i := range commandTable {
		commands[commandTable[i].name] = &commandTable[i]
	}
}

var commandTable = []command{
	{name: "get", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, form: keys, answer: aValue},
	{name: "mget", arity: -2, flags: readonly | fast, first: 1, last: -1, step: 1, form: keys, answer: aValues},
	{name: "exists", arity: -2, flags: readonly | fast, first: 1, last: -1, step: 1, form: keys, answer: aCount},
	{name: "strlen", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, form: keys, answer: aLength},
	{name: "type", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, form: keys, answer: aType},
	{name: "ttl", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, form: keys, answer: aTTL},
	{name: "pttl", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, form: keys, answer: aTTL},
	{name: "hget", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, form: fields, answer: aValue},
	{name: "hmget", arity: -3, flags: readonly | fast, first: 1, last: 1, step: 1, form: fields, answer: aValues},
	{name: "hexists", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, form: fields, answer: aCount},
	{name: "hstrlen", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, form: fields, answer: aLength},
	{name: "hlen", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, run: (*conn).hlen},
	{name: "hscan", arity: -3, flags: readonly, first: 1, last: 1, step: 1, run: (*conn).hscan},
	{name: "scan", arity: -2, flags: readonly, run: (*conn).scan},
	{name: "dbsize", arity: 1, flags: readonly | fast, run: (*conn).dbSize},
	{name: "select", arity: 2, flags: fast | loading, run: (*conn).selectDB},
	{name: "ping", arity: -1, flags: fast, run: (*conn).ping},
	{name: "echo", arity: 2, flags: fast | loading, run: (*conn).ping},
	{name: "hello", arity: -1, flags: fast | loading | noAuth, run: (*conn).hello},
	{name: "auth", arity: -2, flags: fast | loading | noAuth, run: (*conn).auth},
	{name: "client", arity: -2, flags: loading, run: (*conn).client},
	{name: "command", arity: -1, flags: loading, run: (*conn).command},
	{name: "info", arity: -1, flags: loading, run: (*conn).info},
	{name: "quit", arity: -1, flags: fast | loading | noAuth, run: (*conn).quit},
}

// writes are the commands of Redis that write, with their arity.
var writes = map[string]int{
	"append": 3, "bitfield": -2, "bitop": -4, "blmove": 6, "blmpop": -5, "blpop": -3, "brpop": -3, "brpoplpush": 4, "bzmpop": -5,
	"bzpopmax": -3, "bzpopmin": -3, "copy": -3, "decr": 2, "decrby": 3, "del": -2, "expire": -3, "expireat": -3, "flushall": -1,
	"flushdb": -1, "geoadd": -5, "georadius": -6, "georadiusbymember": -5, "geosearchstore": -8, "getdel": 2, "getex": -2,
	"getset": 3, "hdel": -3, "hincrby": 4, "hincrbyfloat": 4, "hmset": -4, "hset": -4, "hsetnx": 4, "incr": 2, "incrby": 3,
	"incrbyfloat": 3, "linsert": 5, "lmove": 5, "lmpop": -4, "lpop": -2, "lpush": -3, "lpushx": -3, "lrem": 4, "lset": 4, "ltrim": 4,
	"migrate": -6, "move": 3, "mset": -3, "msetnx": -3, "persist": 2, "pexpire": -3, "pexpireat": -3, "pfadd": -2, "pfdebug": 3,
	"pfmerge": -2, "psetex": 4, "rename": 3, "renamenx": 3, "restore": -4, "restore-asking": -4, "rpop": -2, "rpoplpush": 3,
	"rpush": -3, "rpushx": -3, "sadd": -3, "sdiffstore": -3, "set": -3, "setbit": 4, "setex": 4, "setnx": 3, "setrange": 4,
	"sinterstore": -3, "smove": 4, "sort": -2, "spop": -2, "srem": -3, "sunionstore": -3, "swapdb": 3, "unlink": -2, "xack": -4,
	"xadd": -5, "xautoclaim": -6, "xclaim": -6, "xdel": -3, "xreadgroup": -7, "xsetid": -3, "xtrim": -4, "zadd": -4, "zdiffstore": -4,
	"zincrby": 4, "zinterstore": -4, "zmpop": -4, "zpopmax": -2, "zpopmin": -2, "zrangestore": -5, "zrem": -3, "zremrangebylex": 4,
	"zremrangebyrank": 4, "zremrangebyscore": 4, "zunionstore": -4,
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
	case known == nil:
		text = c.unsupported(name, args)
	case !fits(len(args), known.arity):
		text = wrongArity(known.name)
	case known.flags&noAuth == 0 && !c.authenticated():
		text = errNoAuth
	case known.flags&loading == 0 && c.server.holding.Load():
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

func fits(args, arity int) bool { return args == arity || arity < 0 && args >= -arity }

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unsupported returns the error of a command that is not supported, or "" if the connection ends without an answer.
func (c *conn) unsupported(name []byte, args [][]byte) string {
	arity, writing := writes[string(name)]
	switch {
	case string(name) == "post", string(name) == "host:":
		// An HTTP request of a browser, which a hostile page can cause. Its body could contain commands.
		c.closing = true
		return ""
	case !writing:
		return unknownCommand(args)
	case !fits(len(args), arity):
		return wrongArity(string(name))
	case !c.authenticated():
		return errNoAuth
	}
	return errWrite
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

func unknownSubcommand(command string, name []byte) string {
	return "ERR unknown subcommand '" + string(cutAtNUL(name, 128)) + "'. Try " + command + " HELP."
}

// cutAtNUL returns the beginning of s that C prints.
func cutAtNUL(s []byte, most int) []byte {
	s = s[:min(len(s), most)]
	if i := bytes.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}
