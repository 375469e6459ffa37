package jsondoc

import (
	"bytes"
	"fmt"
	"math"

	"github.com/varve-db/varve/errs"
)

// MostMembers, MostNames and MostValues bound the memory that reading a document takes: a name costs up
// to 600 bytes while duplicates are detected and it becomes a key of a map (a million of them took 636
// MB and 22 s), a value up to 70 as a Go value, and either may take only 3 bytes of the text.
const (
	MostMembers = 1 << 18 // maximum number of members of objects, at all levels of a document
	MostNames   = 1 << 20 // as MostMembers, for a value of working memory, which is decoded separately and on demand
	MostValues  = 4 << 20 // maximum number of values in a text that is decoded to a map or a list of any
)

// CheckDepth returns an error for a text that nests deeper than maxDepth (0: MaxDepth) if it is at this
// indent level. It makes one pass over the brackets, before any recursion, and checks nothing else.
func CheckDepth(src []byte, level, maxDepth int) error {
	return checkShape(src, level, maxDepth, math.MaxInt)
}

// CheckShape is like CheckDepth, and also returns an error for a text of more than MostNames names.
func CheckShape(src []byte, level, maxDepth int) error {
	return checkShape(src, level, maxDepth, MostNames)
}

func checkShape(src []byte, level, maxDepth, mostNames int) error {
	if maxDepth <= 0 {
		maxDepth = MaxDepth
	}
	depth, names := level, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			i = endOfString(src, i)
		case '[', '{':
			if depth++; depth > maxDepth {
				return &errs.FieldError{Limit: fmt.Sprintf("depth %d", maxDepth),
					Err: fmt.Errorf("%w: nested too deeply at byte %d", errs.ErrTooLarge, i)}
			}
		case ']', '}':
			depth--
		case ':':
			if names++; names > mostNames {
				return &errs.FieldError{Limit: fmt.Sprintf("%d names", mostNames),
					Err: fmt.Errorf("%w: too many members of objects", errs.ErrTooLarge)}
			}
		}
	}
	return nil
}

// checkValues returns an error for a text of more than MostValues values. A value takes at least two
// bytes.
func checkValues(src []byte) error {
	if len(src) <= 2*MostValues {
		return nil
	}
	values := 1
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			i = endOfString(src, i)
		case '[', '{', ',':
			values++
		}
	}
	if values <= MostValues {
		return nil
	}
	return &errs.FieldError{Limit: fmt.Sprintf("%d values", MostValues),
		Err: fmt.Errorf("%w: too many values in lists and objects", errs.ErrTooLarge)}
}

// CheckCounts returns an error for the encoded text of a value that could not be decoded again, because it has more
// than MostNames names or MostValues values. A short text has neither.
func CheckCounts(written []byte) error { return checkCounts(written, MostNames) }

func checkCounts(written []byte, mostNames int) error {
	if len(written) <= 4*mostNames {
		return nil
	}
	if err := checkShape(written, 0, DeepestDepth, mostNames); err != nil {
		return err
	}
	return checkValues(written)
}

// endOfString returns the offset of the quote that closes the string opened at i.
func endOfString(src []byte, i int) int {
	for {
		n := bytes.IndexByte(src[i+1:], '"')
		if n < 0 {
			return len(src)
		}
		i += 1 + n
		back := i
		for back > 0 && src[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i
		}
	}
}
