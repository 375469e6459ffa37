package table

// Schema defines the name of a table and its sections.
type Schema struct {
	// Name without extension: for "memory_index" the base file is memory_index.json, the delta
	// memory_index.delta.json.
	Name     string
	Sections []Section
	// Offsets is the name of the file with the offsets of the base, relative to the folder of the table; the file with
	// those of the delta has ".delta" appended. "" means that look-ups always search. Tables of less than OffsetsFrom
	// bytes have no offsets.
	Offsets     string
	OffsetsFrom int64
}

// Section describes one of the sorted lists of keys and values in a table.
type Section struct {
	Name  string // name of the section's JSON member
	Count string // name of the metadata member with the section's number of live entries; "" for none
	// Optional means that older files may lack this section and those after it; such a section is empty. New files have
	// all sections, except Spare ones.
	Optional bool
	// Spare means that a file lacks the section while it is empty, unless a section after it is present. A
	// Spare section is Optional, too.
	Spare bool
	// Offsets means that the section's keys are in the file with the offsets.
	Offsets bool
	// Dead reports whether a value in a delta means that the key of the base is deleted.
	Dead func(value []byte) bool
	// Valid returns an error if a value is invalid; Check calls it. If Valid is nil, values are not checked.
	Valid func(value []byte) error
}

// Base returns the name of the base file.
func (s *Schema) Base() string { return s.Name + ".json" }

// Delta returns the name of the delta file.
func (s *Schema) Delta() string { return s.Name + ".delta.json" }

// head returns the text in the file that closes the previous section and opens section i.
func (s *Schema) head(i int) string {
	if i == 0 {
		return `{"` + s.Sections[0].Name + `": {` + "\n"
	}
	return `},"` + s.Sections[i].Name + `": {` + "\n"
}

// foot is the text that closes the last section.
const foot = "}\n"
