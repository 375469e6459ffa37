package settings

import "fmt"

// Check returns an error if the text of a config.json is not valid.
func Check(text []byte) error {
	c, err := Parse(text)
	if err != nil && c == nil {
		err = fmt.Errorf("%s: %w", Name, err)
	}
	return err
}
