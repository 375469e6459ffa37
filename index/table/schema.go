package table

// Schema defines the name of a table and its sections.
type Schema struct {
	// name of the table: for "memory_index" the base is memory_index.json, the delta memory_index.delta.json
	Name     string
	Sections []Section
}

// Section is one sorted object of a table.
type Section struct {
	Name  string // the name of its JSON member
	Count string // the name of the metadata member with its number of live entries; "" for none
	// Optional means that older files may lack this section and those after it; such a section is empty. New files have
	// all sections, except Spare ones.
	Optional bool
	// Spare means that a file lacks the section while the section is empty, unless the file has a later section. A
	// Spare section is Optional too.
	Spare bool
	// Dead reports whether a value of a delta hides the base's entry.
	Dead func(value []byte) bool
	// Valid returns an error if the value of a line is invalid; Check calls it. If nil, values are not checked.
	Valid func(value []byte) error
}

// Base returns the name of the base file.
func (s *Schema) Base() string { return s.Name + ".json" }

// Delta returns the name of the delta file.
func (s *Schema) Delta() string { return s.Name + ".delta.json" }

// head returns the text that opens section i and closes the previous one.
func (s *Schema) head(i int) string {
	if i == 0 {
		return `{"` + s.Sections[0].Name + `": {` + "\n"
	}
	return `},"` + s.Sections[i].Name + `": {` + "\n"
}

// foot is the text that closes the last section.
const foot = "}\n"
