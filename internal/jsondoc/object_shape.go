package jsondoc

import (
	"bytes"
	"fmt"
	"math"

	"github.com/varve-db/varve/errs"
)

// MostMembers, MostNames and MostValues bound the memory that reading a document takes: a name costs up to 600
// bytes while it is looked for a second time and becomes a key of a map (a million of them took 636 MB
// and 22 s), a value up to 70 once it is a Go value, and either can have as few as 3 in the text.
const (
	MostMembers = 1 << 18 // members of objects, at all levels of a document
	MostNames   = 1 << 20 // the same of a value of working memory, which is decoded alone and when it is asked for
	MostValues  = 4 << 20 // in what becomes a map or a list of any
)

// CheckDepth refuses a text that nests deeper than maxDepth (0: MaxDepth) when
// it stands at this indent level. It is one pass over the brackets, before
// anything recurses, and says nothing else about the text.
func CheckDepth(src []byte, level, maxDepth int) error {
	return checkShape(src, level, maxDepth, math.MaxInt)
}

// CheckShape is CheckDepth that also refuses a text of more than MostNames names.
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

// checkValues refuses the text of more than MostValues values. A value takes at least two bytes.
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

// CheckCounts refuses the text of a value that is written and could not be read again, for more than
// MostNames names or MostValues values. What is short has neither.
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

// endOfString gives the offset of the quote that closes the string opened at i.
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
