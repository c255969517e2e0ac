package resp

import (
	"maps"
	"slices"
	"strings"
)

// command answers COMMAND.
func (c *conn) command(args [][]byte) {
	if len(args) == 1 {
		c.describeAll(commandNames(), false)
		return
	}
	switch sub := strings.ToLower(string(args[1][:min(len(args[1]), maxName)])); sub {
	case "count":
		c.exactly(args, 2, func([][]byte) { c.w.integer(int64(len(commands))) })
	case "help":
		c.exactly(args, 2, func([][]byte) { c.help("COMMAND") })
	case "list":
		c.exactly(args, 2, func([][]byte) { c.listCommands() })
	case "info":
		c.describeAll(asked(args[2:]), false)
	case "docs":
		c.describeAll(asked(args[2:]), true)
	case "getkeys":
		if len(args) < 3 {
			c.fail(wrongArity("command|getkeys"))
			return
		}
		c.getKeys(args[2:])
	default:
		c.fail(unknownSubcommand("COMMAND", args[1]))
	}
}

// commandNames returns the names of all commands, sorted.
func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// asked returns the names of the commands in the arguments, or all names if there are none.
func asked(args [][]byte) []string {
	if len(args) == 0 {
		return commandNames()
	}
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = strings.ToLower(string(arg[:min(len(arg), maxName)]))
	}
	return list
}

func (c *conn) listCommands() {
	list := commandNames()
	c.w.array(len(list))
	for _, name := range list {
		c.w.text(name)
	}
}

// describeAll answers with the properties of commands, or their documentation, which unknown names do not have.
func (c *conn) describeAll(list []string, docs bool) {
	if docs {
		list = slices.DeleteFunc(list, func(name string) bool { return commands[name] == nil })
		c.w.pairs(len(list))
	} else {
		c.w.array(len(list))
	}
	for _, name := range list {
		switch known := commands[name]; {
		case docs:
			c.w.text(name)
			c.document(known)
		case known == nil:
			c.w.nullArray()
		default:
			c.properties(known)
		}
		c.flushIfFull()
	}
}

// properties appends what COMMAND INFO says of a command.
func (c *conn) properties(known *command) {
	c.w.array(10)
	c.w.text(known.name)
	c.w.integer(int64(known.arity))
	var flags, categories []string
	for i, name := range flagNames {
		if known.flags&(1<<i) != 0 {
			flags = append(flags, name)
		}
	}
	if known.flags&readonly != 0 {
		categories = append(categories, "@read", "@"+known.group)
	}
	if known.group == "connection" {
		categories = append(categories, "@connection")
	}
	c.words(flags)
	c.w.integer(int64(known.first))
	c.w.integer(int64(known.last))
	c.w.integer(int64(known.step))
	c.words(categories)
	c.w.array(0) // tips
	c.w.array(0) // key specifications
	c.w.array(0) // subcommands
}

// words appends a set of simple strings.
func (c *conn) words(list []string) {
	c.w.set(len(list))
	for _, word := range list {
		c.w.simple(word)
	}
}

// document appends what COMMAND DOCS says of a command.
func (c *conn) document(known *command) {
	c.w.pairs(4)
	for _, pair := range [][2]string{
		{"summary", strings.TrimSpace(known.summary + " " + known.name + " " + known.args)},
		{"since", known.since}, {"group", known.group}, {"complexity", known.complexity},
	} {
		c.w.text(pair[0])
		c.w.text(pair[1])
	}
}

// getKeys answers COMMAND GETKEYS.
func (c *conn) getKeys(args [][]byte) {
	known := commands[asked(args[:1])[0]]
	switch n := len(args); {
	case known == nil:
		c.fail("ERR Invalid command specified")
		return
	case known.first == 0:
		c.fail("ERR The command has no key arguments")
		return
	case n != known.arity && (known.arity > 0 || n < -known.arity):
		c.fail("ERR Invalid number of arguments specified for command")
		return
	}
	last := known.last
	if last < 0 {
		last += len(args)
	}
	keys := args[known.first : last+1]
	c.w.array(len(keys))
	for _, key := range keys {
		c.w.bulk(key)
		c.flushIfFull()
	}
}
