package table

import "fmt"

// Rounds has the contenders measured in turn, n times, beginning with another one each time, so that none
// always follows the same.
func Rounds[C fmt.Stringer](n int, contenders []C, measure func(round int, c C) error) error {
	for round := range n {
		for i := range contenders {
			c := contenders[(round+i)%len(contenders)]
			if err := measure(round, c); err != nil {
				return fmt.Errorf("%v, round %d: %w", c, round, err)
			}
		}
	}
	return nil
}
