package resp

// command is a command that is supported: what COMMAND says of it, and what runs it.
type command struct {
	name  string // lower case
	arity int    // the number of arguments with the name; a negative one is the minimum
	flags flag
	// first, last and step are the positions of keys among the arguments.
	first, last, step int
	group, since      string
	args              string // the syntax of its arguments
	summary           string
	complexity        string
	// run answers the command. Its arguments are valid until it returns. Reads with a form have none: they are looked up
	// together with the reads before and after them, see reading.
	run    func(c *conn, args [][]byte)
	form   form
	answer answer
}

// form is how the arguments of a read name keys.
type form uint8

const (
	noForm    form = iota
	oneKey         // db/key
	allKeys        // db/key ...
	oneField       // db key
	allFields      // db key ...
)

// answer is what the answer of a read has of the values.
type answer uint8

const (
	aValue  answer = iota // the value
	aValues               // all values, in an array
	aCount                // how many keys exist
	aLength               // the length of the value
)

// needsValue reports whether an answer has more of a value than its length.
func (a answer) needsValue() bool { return a == aValue || a == aValues }

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

// subcommands is the syntax of commands that consist of subcommands.
var subcommands = map[string][]string{
	"client":  {"GETNAME", "HELP", "ID", "INFO", "LIST", "NO-EVICT (ON|OFF)", "NO-TOUCH (ON|OFF)", "REPLY (ON)", "SETINFO <attribute> <value>", "SETNAME <name>", "TRACKING (OFF)"},
	"command": {"(no subcommand)", "COUNT", "DOCS [<name> [...]]", "GETKEYS <command>", "HELP", "INFO [<name> [...]]", "LIST"},
}

func init() { // commands refer to the table
	commands = make(map[string]*command, len(commandTable))
	for i := range commandTable {
		commands[commandTable[i].name] = &commandTable[i]
	}
}

var commandTable = []command{
	{name: "get", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, group: "string", since: "1.0.0", args: "key",
		summary: "Returns the value of a key of a database.", complexity: "O(1)", form: oneKey, answer: aValue},
	{name: "mget", arity: -2, flags: readonly | fast, first: 1, last: -1, step: 1, group: "string", since: "1.0.0", args: "key [key ...]",
		summary: "Returns the values of keys. Those of the same database are of the same version.", complexity: "O(N)", form: allKeys, answer: aValues},
	{name: "exists", arity: -2, flags: readonly | fast, first: 1, last: -1, step: 1, group: "generic", since: "1.0.0", args: "key [key ...]",
		summary: "Counts the keys that exist.", complexity: "O(N)", form: allKeys, answer: aCount},
	{name: "strlen", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, group: "string", since: "2.2.0", args: "key",
		summary: "Returns the length of a value in bytes, 0 if the key does not exist.", complexity: "O(1)", form: oneKey, answer: aLength},
	{name: "hget", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, group: "hash", since: "2.0.0", args: "db key",
		summary: "Returns the value of a key of a database.", complexity: "O(1)", form: oneField, answer: aValue},
	{name: "hmget", arity: -3, flags: readonly | fast, first: 1, last: 1, step: 1, group: "hash", since: "2.0.0", args: "db key [key ...]",
		summary: "Returns the values of keys of a database, all of the same version.", complexity: "O(N)", form: allFields, answer: aValues},
	{name: "hexists", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, group: "hash", since: "2.0.0", args: "db key",
		summary: "Reports whether a key exists in a database.", complexity: "O(1)", form: oneField, answer: aCount},
	{name: "hstrlen", arity: 3, flags: readonly | fast, first: 1, last: 1, step: 1, group: "hash", since: "3.2.0", args: "db key",
		summary: "Returns the length of a value in bytes, 0 if the key does not exist.", complexity: "O(1)", form: oneField, answer: aLength},
	{name: "getrange", arity: 4, flags: readonly, first: 1, last: 1, step: 1, group: "string", since: "2.4.0", args: "key start end",
		summary: "Returns a part of a value.", complexity: "O(N)", run: (*conn).getRange},
	{name: "substr", arity: 4, flags: readonly, first: 1, last: 1, step: 1, group: "string", since: "1.0.0", args: "key start end",
		summary: "Returns a part of a value.", complexity: "O(N)", run: (*conn).getRange},
	{name: "hlen", arity: 2, flags: readonly | fast, first: 1, last: 1, step: 1, group: "hash", since: "2.0.0", args: "db",
		summary: "Returns the number of records of a database.", complexity: "O(N) of the partitions", run: (*conn).hlen},
	{name: "hscan", arity: -3, flags: readonly, first: 1, last: 1, step: 1, group: "hash", since: "2.8.0", args: "db cursor [MATCH prefix*] [COUNT count] [NOVALUES]",
		summary: "Returns some records of a database, in the order of their keys.", complexity: "O(N)", run: (*conn).hscan},
	{name: "scan", arity: -2, flags: readonly, group: "generic", since: "2.8.0", args: "cursor [MATCH prefix*] [COUNT count] [TYPE string]",
		summary: "Returns some keys of a database, in order.", complexity: "O(N)", run: (*conn).scan},
	{name: "dbsize", arity: 1, flags: readonly | fast, group: "server", since: "1.0.0",
		summary: "Returns the number of records of the selected database, or of all.", complexity: "O(N) of the partitions", run: (*conn).dbSize},
	{name: "select", arity: 2, flags: fast | loading, group: "connection", since: "1.0.0", args: "db",
		summary: "Makes later keys those of a database. 0 ends this.", complexity: "O(1)", run: (*conn).selectDB},
	{name: "ping", arity: -1, flags: fast, group: "connection", since: "1.0.0", args: "[message]",
		summary: "Returns PONG or the message.", complexity: "O(1)", run: (*conn).ping},
	{name: "echo", arity: 2, flags: fast | loading, group: "connection", since: "1.0.0", args: "message",
		summary: "Returns the message.", complexity: "O(1)", run: (*conn).echo},
	{name: "hello", arity: -1, flags: fast | loading | noAuth, group: "connection", since: "6.0.0", args: "[protover [AUTH username password] [SETNAME clientname]]",
		summary: "Selects the version of the protocol.", complexity: "O(1)", run: (*conn).hello},
	{name: "auth", arity: -2, flags: fast | loading | noAuth, group: "connection", since: "1.0.0", args: "[username] password",
		summary: "Authenticates with a token.", complexity: "O(N) of the tokens", run: (*conn).auth},
	{name: "client", arity: -2, flags: loading, group: "connection", since: "2.4.0", args: "subcommand",
		summary: "Attributes of the connection.", complexity: "O(1)", run: (*conn).client},
	{name: "command", arity: -1, flags: loading, group: "server", since: "2.8.13", args: "[subcommand]",
		summary: "Describes the commands.", complexity: "O(N) of the commands", run: (*conn).command},
	{name: "info", arity: -1, flags: loading, group: "server", since: "1.0.0", args: "[section [section ...]]",
		summary: "Returns the state of the server.", complexity: "O(1)", run: (*conn).info},
	{name: "quit", arity: -1, flags: fast | loading | noAuth, group: "connection", since: "1.0.0",
		summary: "Closes the connection.", complexity: "O(1)", run: (*conn).quit},
	{name: "reset", arity: 1, flags: fast | loading | noAuth, group: "connection", since: "6.2.0",
		summary: "Makes the connection as it was when it was opened.", complexity: "O(1)", run: (*conn).reset},
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
