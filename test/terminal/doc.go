// Package terminal tests the commands in a real terminal: bash in tmux, which draws what they write and types what people
// would.
package terminal
