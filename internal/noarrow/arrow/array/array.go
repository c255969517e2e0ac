// Package array declares types of columns.
package array

import "github.com/apache/arrow-go/v18/arrow"

// Columns of values without more than these.
type (
	Boolean   = values[bool]
	Int32     = values[int32]
	Int64     = values[int64]
	Uint64    = values[uint64]
	String    = values[string]
	Timestamp = values[arrow.Timestamp]
)

// Map is a column of maps.
type Map struct{ values[struct{}] }

func (*Map) Offsets() []int32 { return nil }

func (*Map) Keys() arrow.Array { return nil }

func (*Map) Items() arrow.Array { return nil }

type values[T any] struct{}

func (*values[T]) IsNull(int) bool { return true }

func (*values[T]) Value(int) (v T) { return v }

func (*values[T]) DataType() arrow.DataType { return nil }
