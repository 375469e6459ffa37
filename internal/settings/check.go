package settings

import "fmt"

// Check says what is wrong with the text of a config.json.
func Check(text []byte) error {
	c, err := Parse(text)
	if err != nil && c == nil {
		err = fmt.Errorf("%s: %w", Name, err)
	}
	return err
}
