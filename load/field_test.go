package load

import (
	"fmt"
	"testing"
)

func TestExplainKey(t *testing.T) {
	for _, test := range []struct{ db, text, want string }{
		{"users", "key is not set; the fields are user_id, name", `; choose one, such as [db.users] key = "user_id"`},
		{"users", `key: there is no field "id"; the fields are user id`, `; choose one, such as [db.users] key = "user id"`},
		{"a.b", "key is not set; the fields are k and 8 more", `; choose one, such as [db."a.b"] key = "k"`},
		{"users", `value: there is no field "v"; the fields are k`, ""},
		{"users", `"k" is a group or a list and cannot be the key`, ""},
	} {
		err := fmt.Errorf("/src/part-0: %w: %s", ErrField, test.text)
		if got := ExplainKey(err, test.db).Error(); got != err.Error()+test.want {
			t.Errorf("%s: %s", test.text, got)
		}
	}
}
