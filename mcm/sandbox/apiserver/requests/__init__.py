"""From a request to the handler of its verb: path, options and accepted forms, taken apart."""
