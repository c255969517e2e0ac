package resp

import "sequins/reads"

// failures are the errors for outcomes without a value, and the HTTP statuses that they are counted as.
var failures = [...]struct {
	code int
	text string
}{
	reads.Absent:      {404, ""}, // null, or 0
	reads.NoDB:        {404, "ERR no such database"},
	reads.NotHere:     {501, "ERR the database or the version is not here"},
	reads.NotLocal:    {501, "ERR this key's partition is not here"},
	reads.Unready:     {503, "LOADING no version of this database can be read on this node yet"},
	reads.Behind:      {503, "TRYAGAIN this node does not serve the version of the cursor yet"},
	reads.Gone:        {410, "ERR the version cannot be read any more"},
	reads.Expired:     {410, "ERR the version of the cursor cannot be read any more: begin again with cursor 0"},
	reads.BadCursor:   {400, "ERR invalid cursor"},
	reads.TooLarge:    {413, "ERR the values are too large for one answer: ask for fewer keys"},
	reads.Busy:        {503, "TRYAGAIN the requests of all clients need too much memory at the moment"},
	reads.Unreadable:  {500, "ERR the block of this key cannot be read"},
	reads.Unreachable: {502, "TRYAGAIN no node that can be reached has this key's partition"},
	reads.Late:        {504, "TRYAGAIN the nodes that have this key's partition took too long"},
	reads.GivenUp:     {499, "ERR this node is shutting down"},
	reads.TooSlow:     {499, "ERR the client reads too slowly"},
}

// status returns the HTTP status that an outcome is counted as.
func status(o reads.Outcome) int {
	if o == reads.Found {
		return 200
	}
	return failures[o].code
}

// Errors of commands. Where Redis has the same one, the text is its own.
const (
	errStarting     = "LOADING this node is starting"
	errNoAuth       = "NOAUTH Authentication required."
	errHelloNoAuth  = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errWrongPass    = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPassword   = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errNoPermission = "NOPERM No permissions to access a key"
	errNoProto      = "NOPROTO unsupported protocol version"
	errProtoRange   = "ERR Protocol version is not an integer or out of range"
	errInteger      = "ERR value is not an integer or out of range"
	errSyntax       = "ERR syntax error"
	errDBRange      = "ERR DB index is out of range"
	errNoDB         = "ERR the key names no database: ask for db/key, or SELECT the database"
	errKeyTooLong   = "ERR the key is longer than 65536 bytes"
	errMixed        = "ERR the keys are of several databases: send a command for each"
	errTooManyKeys  = "ERR too many keys in one command"
	errMaxClients   = "ERR max number of clients reached"
)
