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
	MostNames   = 1 << 20 // the same maximum for a value of working memory, which is decoded alone and on demand
	MostValues  = 4 << 20 // maximum number of values in a text that is decoded to a map or a list of any
)

// CheckDepth returns an error if src, as a value at the given level of a document, would nest deeper than maxDepth. If
// maxDepth is 0, the limit is MaxDepth. CheckDepth makes one pass over the brackets, before any recursion, and checks
// nothing else.
func CheckDepth(src []byte, level, maxDepth int) error {
	return checkShape(src, level, maxDepth, math.MaxInt)
}

// CheckShape does the same as CheckDepth, and also returns an error if src has more than MostNames names of members.
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

// checkValues returns an error if src has more than MostValues values. It need not count the values of a short text,
// because each value takes at least two bytes.
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

// CheckCounts returns an error if the encoded text of a value has more than MostNames names or MostValues values,
// because such a text could not be read again.
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
