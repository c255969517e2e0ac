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

// The codes that are distinguished.
const (
	NoNode         Error = -101
	BadVersion     Error = -103
	NodeExists     Error = -110
	NotEmpty       Error = -111
	SessionExpired Error = -112

	rolledBack     Error = -2 // of an operation of a transaction that failed because of another one
	connectionLoss Error = -4
	authFailed     Error = -115
	closing        Error = -116
	sessionMoved   Error = -118
)

var texts = map[Error]string{
	-8:             "invalid path or arguments",
	NoNode:         "znode does not exist",
	-102:           "not authenticated",
	BadVersion:     "znode has another version",
	-108:           "ephemeral znodes cannot have children",
	NodeExists:     "znode exists already",
	NotEmpty:       "znode has children",
	SessionExpired: "the session has expired",
	-114:           "invalid access control list",
	authFailed:     "authentication failed",
	connectionLoss: "the server has lost its connection",
	rolledBack:     "another operation of the transaction failed",
	closing:        "the server is shutting down",
	sessionMoved:   "the session has moved to another server",
	-127:           "the server is overloaded",
}

// Error describes the code.
func (e Error) Error() string {
	if text, found := texts[e]; found {
		return "zookeeper: " + text
	}
	return fmt.Sprintf("zookeeper: error %d", int32(e))
}
