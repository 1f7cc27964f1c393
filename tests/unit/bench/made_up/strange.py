import json
import sys

if __name__ == "__main__":
    results = {"fast": {"seconds": 2.5, "series": [1, 2]}, "name": "x"}
    said = {"bench": "strange", "parameters": {"size": 3}, "results": results}
    sys.stdout.write(json.dumps(said))
