import sys

if __name__ == "__main__":
    sys.exit("the server is gone")
