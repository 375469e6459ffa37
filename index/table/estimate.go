package table

// A search estimates positions with numbers: the characters of keys are read as digits, in an order that never
// contradicts the order of bytes. Two characters may share a digit.

// The alphabets that keys may be written in, the most specific first. For a range of keys the first alphabet
// is used that has all the characters to compare.
const (
	inDecimal = 1 << iota // the characters 0-9 -
	inHex                 // the characters 0-9 a-f -
	inLower               // the characters a-z
	inName                // the characters 0-9 a-z . _ - / :
	inAny
)

// charsets returns, as a bit set, the alphabets that a byte belongs to.
func charsets(c byte) uint8 {
	switch {
	case c == 0:
		return inDecimal | inHex | inLower | inName | inAny
	case c >= '0' && c <= '9':
		return inDecimal | inHex | inName | inAny
	case c == '-':
		return inDecimal | inHex | inName | inAny
	case c >= 'a' && c <= 'f':
		return inHex | inLower | inName | inAny
	case c >= 'g' && c <= 'z':
		return inLower | inName | inAny
	case c == '_' || c == '.' || c == '/' || c == ':':
		return inName | inAny
	}
	return inAny
}

func hexDigit(c byte) uint64 {
	switch {
	case c >= 'a':
		return uint64(c-'a') + 10
	case c >= '0':
		return uint64(c - '0')
	}
	return 0
}

func lowerDigit(c byte) uint64 {
	if c == 0 {
		return 0
	}
	return uint64(c-'a') + 1
}

func nameDigit(c byte) uint64 {
	switch {
	case c >= 'a':
		return uint64(c-'a') + 13
	case c == '_':
		return 12
	case c >= '0':
		return uint64(c-'0') + 1 // characters up to ':'
	}
	return 0
}

// sample has the characters that a search compares to estimate where a key is between a lower and a higher key. All
// three keys begin with a common prefix, which the sample omits. The sample also omits later positions where all three
// keys have the same character, such as the hyphens and the version of a UUID, because these tell nothing about the
// distance. A key that has ended has zeros.
type sample struct {
	k, lo, hi [10]byte
	n         int
	set       uint8 // set of the alphabets that have all these characters
}

// take fills the sample from the three keys, whose first p bytes agree. It reads more positions of the keys than the
// sample has room for, because it leaves out the positions where all three agree.
func (s *sample) take(k, lo, hi []byte, p int) {
	s.set = inDecimal | inHex | inLower | inName | inAny
	kEnd, loEnd, hiEnd := false, false, false
	for i := p; i < p+18 && s.n < len(s.k); i++ {
		c, a, z := char(k, i, &kEnd), char(lo, i, &loEnd), char(hi, i, &hiEnd)
		if c == a && a == z {
			if c == 0 {
				break
			}
			continue
		}
		s.set &= charsets(c) & charsets(a) & charsets(z)
		s.k[s.n], s.lo[s.n], s.hi[s.n] = c, a, z
		s.n++
	}
}

// char returns the character at index i of the encoded key at the start of b. It returns 0 if the key ends at or
// before i, and then sets *end: with *end set, char always returns 0.
func char(b []byte, i int, end *bool) byte {
	if *end || i >= len(b) || b[i] == '"' {
		*end = true
		return 0
	}
	return b[i]
}

// numbers returns the three keys of the sample as numbers that can be interpolated.
func (s *sample) numbers() (k, lo, hi uint64) {
	switch {
	case s.set&inDecimal != 0:
		for i := range s.k {
			k, lo, hi = k*10+hexDigit(s.k[i]), lo*10+hexDigit(s.lo[i]), hi*10+hexDigit(s.hi[i])
		}
	case s.set&inHex != 0:
		for i := range s.k {
			k, lo, hi = k<<4+hexDigit(s.k[i]), lo<<4+hexDigit(s.lo[i]), hi<<4+hexDigit(s.hi[i])
		}
	case s.set&inLower != 0:
		for i := range s.k {
			k, lo, hi = k*27+lowerDigit(s.k[i]), lo*27+lowerDigit(s.lo[i]), hi*27+lowerDigit(s.hi[i])
		}
	case s.set&inName != 0:
		for i := range s.k {
			k, lo, hi = k*39+nameDigit(s.k[i]), lo*39+nameDigit(s.lo[i]), hi*39+nameDigit(s.hi[i])
		}
	default:
		for i := range s.k[:8] {
			k, lo, hi = k<<8+uint64(s.k[i]), lo<<8+uint64(s.lo[i]), hi<<8+uint64(s.hi[i])
		}
	}
	return k, lo, hi
}

// fraction estimates the position of key k between the keys lo and hi, from 0 to 1. All three share their first
// p bytes.
func fraction(k, lo, hi []byte, p int) float64 {
	var s sample
	s.take(k, lo, hi, p)
	v, from, to := s.numbers()
	switch {
	case v <= from || to <= from:
		return 0
	case v >= to:
		return 1
	}
	return float64(v-from) / float64(to-from)
}
