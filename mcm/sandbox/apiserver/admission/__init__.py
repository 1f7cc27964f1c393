"""Who is asked before a change is stored: validating webhooks; mutating ones are only kept."""
