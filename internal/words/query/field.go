package query

// Field is a part of a document that is indexed separately.
type Field uint8

// The fields.
const (
	Content Field = iota
	Name          // persons whom the memory is about or from: speaker, author, name
	Caption       // caption of a picture
	Date          // year, month and weekday of the time
	Title
	Tags
	Category
	Key
	Fields // the number of fields
)

// FieldSet is a set of fields, one bit for each.
type FieldSet uint32

// AllFields has every field.
const AllFields FieldSet = 1<<Fields - 1

// Of returns the set of one field.
func Of(f Field) FieldSet { return 1 << f }

// FieldNamed returns the field of a name in a query or a setting. Usual names of metadata members are accepted too.
func FieldNamed(name string) (Field, bool) {
	switch name {
	case "content", "text":
		return Content, true
	case "speaker", "author", "name", "from", "by":
		return Name, true
	case "caption", "picture":
		return Caption, true
	case "date", "when":
		return Date, true
	case "title":
		return Title, true
	case "tag", "tags":
		return Tags, true
	case "category":
		return Category, true
	case "key":
		return Key, true
	}
	return 0, false
}

// Text is the text of one field of a document.
type Text struct {
	Field Field
	Text  string
}

// String returns the name of the field in a query.
func (f Field) String() string {
	return [...]string{"content", "speaker", "caption", "date", "title", "tag", "category", "key"}[f]
}
