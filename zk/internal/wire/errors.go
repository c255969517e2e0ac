package wire

import (
	"errors"
	"fmt"
)

// ErrLost is the error of requests whose connection has ended without a reply. They may have been applied. [Conn.Err]
// tells why the connection has ended.
var ErrLost = errors.New("zookeeper: connection lost")

// An Error is a code by which a server refuses a request.
type Error int32

// The codes that callers distinguish.
const (
	BadArguments   Error = -8
	NoNode         Error = -101
	NotAuthorized  Error = -102
	BadVersion     Error = -103
	NoChildren     Error = -108
	NodeExists     Error = -110
	NotEmpty       Error = -111
	SessionExpired Error = -112
	InvalidACL     Error = -114
	AuthFailed     Error = -115

	connectionLoss Error = -4
	rolledBack     Error = -2 // of an operation of a transaction that failed because of another one
	closing        Error = -116
	sessionMoved   Error = -118
	throttled      Error = -127
)

var texts = map[Error]string{
	BadArguments:   "invalid path or arguments",
	NoNode:         "znode does not exist",
	NotAuthorized:  "not authenticated",
	BadVersion:     "znode has another version",
	NoChildren:     "ephemeral znodes cannot have children",
	NodeExists:     "znode exists already",
	NotEmpty:       "znode has children",
	SessionExpired: "the session has expired",
	InvalidACL:     "invalid access control list",
	AuthFailed:     "authentication failed",
	connectionLoss: "the server has lost its connection",
	rolledBack:     "another operation of the transaction failed",
	closing:        "the server is shutting down",
	sessionMoved:   "the session has moved to another server",
	throttled:      "the server is overloaded",
}

// Error describes the code.
func (e Error) Error() string {
	if text, found := texts[e]; found {
		return "zookeeper: " + text
	}
	return fmt.Sprintf("zookeeper: error %d", int32(e))
}

// endsConnection reports whether nothing more can be asked on a connection after this error.
func (e Error) endsConnection() bool {
	switch e {
	case connectionLoss, SessionExpired, AuthFailed, closing, sessionMoved:
		return true
	}
	return false
}
