package kind

import "errors"

// Gone returns the error for a document whose file is missing. lost reports whether the store knows no copy of the
// document.
func Gone(lost bool) error {
	if lost {
		return errors.New("the file is missing, and no copy of it is known")
	}
	return errors.New("the file was deleted by hand: the next read adopts the deletion, or restores the file if " +
		"adopt_deletions is false; a repair restores the file")
}
