package page

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A browser changes text in a form: a textarea has no CR and no NUL, and an attribute of HTML has neither. A text that
// is saved without an edit must not change, and a button must not name another document. So a textarea gets a
// fieldText, and the values of hidden fields and check boxes are escaped.

// fieldText is a text in the form that an HTML textarea can hold.
type fieldText struct {
	Text string // all line ends are LF, and the text has no CR and no NUL
	CRLF bool   // all line ends of the original text are CR LF
	// CR and NUL are the characters that replace CR and NUL in Text; they have no other use in Text. "": the original
	// text does not contain CR or NUL.
	CR, NUL string
}

// Names of the form fields that describe how the text of the form is encoded.
const (
	fieldCRLF = "content.crlf"
	fieldCR   = "content.cr"
	fieldNUL  = "content.nul"
)

// fieldOf returns a text in the form that a textarea can hold. The method read of the result restores the original
// text.
func fieldOf(text string) (f fieldText) {
	if n := strings.Count(text, "\r\n"); n > 0 && n == strings.Count(text, "\n") && n == strings.Count(text, "\r") {
		f.CRLF, text = true, strings.ReplaceAll(text, "\r\n", "\n")
	}
	if strings.Contains(text, "\r") {
		f.CR = standIn(text, '\u240d')
		text = strings.ReplaceAll(text, "\r", f.CR)
	}
	if strings.Contains(text, "\x00") {
		f.NUL = standIn(text, '\u2400')
		text = strings.ReplaceAll(text, "\x00", f.NUL)
	}
	f.Text = text
	return f
}

// standIn returns a character that does not occur in the text, as a replacement for another character. It returns
// symbol, the printable symbol of the replaced character, if the text does not contain symbol; otherwise a character of
// the supplementary private use areas. If the text contains all of these (it then has at least 512 KiB), standIn
// returns U+FFFD, and content refuses the form. standIn reads the text at most twice, so that a text with many of these
// characters does not make it slow.
func standIn(text string, symbol rune) string {
	if !strings.ContainsRune(text, symbol) {
		return string(symbol)
	}
	const first = '\U000F0000'
	var used [utf8.MaxRune - first + 1]bool
	for _, r := range text {
		if r >= first {
			used[r-first] = true
		}
	}
	for i, u := range used {
		if !u {
			return string(first + rune(i))
		}
	}
	return string(utf8.RuneError)
}

// read returns the original text of a field from the text that a browser sent. Browsers send CR LF for each LF.
func (f fieldText) read(entered string) string {
	s := strings.ReplaceAll(entered, "\r\n", "\n")
	if f.CRLF {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	if f.CR != "" {
		s = strings.ReplaceAll(s, f.CR, "\r")
	}
	if f.NUL != "" {
		s = strings.ReplaceAll(s, f.NUL, "\x00")
	}
	return s
}

// content returns the text that the person has entered into the field "content" of a form, with the original line ends
// and special characters restored (see fieldText). It returns an error if the form does not describe its encoding
// correctly.
func (r *request) content() (string, error) {
	f := fieldText{CRLF: r.get(fieldCRLF) != "", CR: r.get(fieldCR), NUL: r.get(fieldNUL)}
	for _, c := range []string{f.CR, f.NUL} {
		if n, size := utf8.DecodeRuneInString(c); c != "" && (size != len(c) || n == utf8.RuneError) {
			return "", &refusal{http.StatusBadRequest, "the form does not describe the encoding of its text",
				"open the form again"}
		}
	}
	return f.read(r.get("content")), nil
}

// escapedField is the suffix of the name of a field whose value was encoded by escaped.
const escapedField = ".escaped"

// escaped encodes a value so that browsers send it back unchanged.
func escaped(value string) string { return url.PathEscape(value) }

// unescape decodes the fields of a form whose names end in escapedField, and adds the values under the names without
// this suffix.
func unescape(form url.Values) error {
	for name, values := range form {
		plain, ok := strings.CutSuffix(name, escapedField)
		if !ok {
			continue
		}
		for _, v := range values {
			value, err := url.PathUnescape(v)
			if err != nil {
				return err
			}
			form.Add(plain, value)
		}
	}
	return nil
}
