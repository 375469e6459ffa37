// Package graph defines how a knowledge graph, entities with observations and relations between
// them, is stored as memories: the one representation that mcpserver, importer and memctl share. It
// opens no file.
//
// # An entity
//
//	{
//	  "id": "entity:Ada",                        EntityID
//	  "content": "Ada (person)\nwrites short",   for readers and searches; made from the metadata, again at each change
//	  "timestamp": "2026-01-02T03:04:05.000006001Z",   when it was created: entities are listed by it
//	  "metadata": {
//	    "category": "entity",
//	    "key": "Ada",                            the complete name
//	    "entityType": "person",
//	    "observations": ["writes short"],        authoritative; in their order
//	    "extra": {"confidence": 0.9}             other members of an imported line; absent if there are no others
//	  }
//	}
//
// # A relation
//
//	{
//	  "id": "relation:Ada|knows|Bob",            RelationID
//	  "content": "Ada knows Bob",
//	  "timestamp": "…",
//	  "metadata": {
//	    "category": "relation",
//	    "from": "Ada", "to": "Bob", "relationType": "knows",
//	    "extra": {…}
//	  }
//	}
//
// # Ids
//
// An id is derived from the name alone, and two names never have the same id, so that finding an
// entity takes one look-up, and two processes that create the same entity create the same memory.
//
//	entity:<name>                              a name of at most 256 bytes
//	entity#<sha256 of the name, hex>           a longer one; metadata.key has it
//	relation:<from>|<type>|<to>                % and | in the parts are %25 and %7C; at most 768 bytes
//	relation#<sha256, hex>                     a longer one: of the parts, each behind its length, 8 bytes little-endian
//
// A memory with such an id and another name in its metadata is not an entity.
//
// # A line
//
// The MCP reference memory server keeps one of these per line; line feeds separate the lines, and
// none follows the last:
//
//	{"type":"entity","name":"Ada","entityType":"person","observations":["writes short"]}
//	{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}
//
// ParseLine takes lines without "type" as well, and keeps other members as extra;
// AppendLine writes them back.
package graph
