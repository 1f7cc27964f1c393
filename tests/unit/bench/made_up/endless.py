import threading

if __name__ == "__main__":
    threading.Event().wait()
